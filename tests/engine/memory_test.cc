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

TEST_F(EngineMemory, ThatIsMissingForOneSequenceLeavesItToTheCallerAndTheQueueAsItWas) {
  RequestQueue queue({}, {}, clock_, model_);
  const auto identity = std::make_shared<const Identity>("a");
  std::vector<Pending> request;
  const auto add = [&](size_t index, const auto& shared) {
    request.push_back({.item = FakeItem(1),
                       .origin = std::make_shared<const RequestOrigin>(),
                       .delivery = Delivery(sink_, index),
                       .identity = shared});
  };
  for (size_t i = 0; i < 3; ++i) {
    add(i, identity);
    EXPECT_TRUE(queue.Push(request).ok());
  }
  add(3, nullptr);
  add(4, identity);
  {
    const FailingAllocations failing(3 * sizeof(Pending));  // as the growing list of sharers takes
    EXPECT_THROW((void)queue.Push(request), std::bad_alloc);
  }
  EXPECT_TRUE(request.at(1).delivery.owes());
  request.at(1).delivery.Release();
  EXPECT_EQ(queue.Flush(absl::UnavailableError("")), 4u);
  EXPECT_EQ(Metric("queue_requests"), 0);
  EXPECT_EQ(Metric("queue_sequences"), 0);
  EXPECT_EQ(sink_->delivered(), 4u);
}

}  // namespace
}  // namespace linserve
