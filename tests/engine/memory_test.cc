#include "engine/result_cache.h"
#include "support/fakes/engine_fixture.h"
#include "support/fakes/failing_allocations.h"

namespace linserve {
namespace {

using EngineMemory = EngineTest;

TEST_F(EngineMemory, ThatIsMissingToKeepAResultIsNotMissedByItsCaller) {
  const auto cache = std::make_shared<ResultCache>(1 << 24, clock_, model_);
  ItemResult result;
  result.outputs["y"] = Tensor::Allocate(DType::kF32, {1 << 18}).first;
  const auto ask = [&](const std::shared_ptr<RecordingSink>& sink, size_t least_to_fail) {
    std::optional<Pending> pending = Pending{.item = FakeItem(1), .delivery = Delivery(sink, 0)};
    if (cache->LookUp(pending)) return true;
    std::vector<Pending> sequences;
    sequences.push_back(*std::move(pending));
    cache->BeginComputing(sequences);
    const FailingAllocations failing(least_to_fail);
    sequences.at(0).delivery.Complete(result);
    return false;
  };
  EXPECT_FALSE(ask(sink_, 1 << 20));
  EXPECT_TRUE(sink_->Await(0).ok());
  EXPECT_EQ(Metric("cache_bytes"), 0);
  const auto second = std::make_shared<RecordingSink>();
  EXPECT_FALSE(ask(second, SIZE_MAX));
  EXPECT_TRUE(second->Await(0).ok());
  EXPECT_GT(Metric("cache_bytes"), 1 << 20);
  EXPECT_TRUE(ask(second, SIZE_MAX));
}

}  // namespace
}  // namespace linserve
