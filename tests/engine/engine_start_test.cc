#include <algorithm>
#include <atomic>
#include <thread>

#include "engine/engine.h"
#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

TEST_F(EngineTest, StartsWhenAllReplicasAreLoadedAndWarm) {
  options_.replicas = 3;
  options_.warmup = true;
  Start();
  EXPECT_EQ(control_->alive(), 3);
  // These are the shortest sequence, the longest, and a full batch of those, for each replica.
  EXPECT_THAT(control_->batch_sizes(), SizeIs(9));
  EXPECT_EQ(engine_->info().architecture, "fake.Model");
  EXPECT_EQ(Metric("batches_total", R"(reason="idle",)"), 0);
}

TEST_F(EngineTest, WarmsUpOnceWhereReplicasShareTheWeights) {
  options_.replicas = 3;
  options_.shared = true;
  options_.warmup = true;
  Start();
  EXPECT_EQ(control_->alive(), 3);
  EXPECT_THAT(control_->batch_sizes(), SizeIs(3));
}

TEST_F(EngineTest, WarmsUpWithTheShortestTheLongestAndAFullBatch) {
  std::vector<std::vector<int64_t>> batches;
  control_->fault = [&](const Batch& batch) {
    batches.push_back(batch.axes.at('n').lengths);
    return Fault::kNone;
  };
  options_.warmup = true;
  const auto lengths_at = [&](int64_t max_tokens, int64_t max_sequences) {
    options_.policy.max_tokens = max_tokens;
    options_.policy.max_sequences = max_sequences;
    batches.clear();
    Start();
    return batches;
  };
  using Lengths = std::vector<int64_t>;
  EXPECT_THAT(lengths_at(200, 8), ElementsAre(Lengths{1}, Lengths{64}, Lengths{64, 64, 64}));
  EXPECT_THAT(lengths_at(200, 2), ElementsAre(Lengths{1}, Lengths{64}, Lengths{64, 64}));
  EXPECT_THAT(lengths_at(100, 8), ElementsAre(Lengths{1}, Lengths{64}));
  EXPECT_THAT(lengths_at(40, 8), ElementsAre(Lengths{1}, Lengths{40}, Lengths{64}));
}

TEST_F(EngineTest, WarmsUpWithPartOfWhatOnlyTakesLonger) {
  control_->longest = 1'000'000;
  int64_t longest = 0;
  control_->fault = [&](const Batch& batch) {
    longest = std::max(longest, batch.rows);
    return Fault::kNone;
  };
  options_.warmup = true;
  Start();
  EXPECT_EQ(longest, 65536);
  control_->longest = 64;
  options_.policy.max_tokens = int64_t{1} << 40;
  options_.policy.max_sequences = kMostSequencesPerBatch;
  longest = 0;
  Start();
  EXPECT_EQ(longest, 65536);
}

TEST_F(EngineTest, WarmsUpWithNoMorePixelsThanABatchHasRows) {
  Signature signature;
  signature.inputs = {
      {.name = "x", .axes = {Axis::Fixed(1), Axis::Ragged('h'), Axis::Ragged('w')}}};
  signature.outputs = {{.name = "y", .axes = {Axis::Fixed(2)}}};
  std::vector<std::pair<int64_t, int64_t>> batches;  // images, and pixels of each
  control_->fault = [&](const Batch& batch) {
    const auto images = static_cast<int64_t>(batch.size());
    batches.emplace_back(images, batch.inputs.at("x").elements() / images);
    return Fault::kNone;
  };
  const auto compute = [](const Batch&, size_t) { return FakeOutputs{{"y", {2, {0, 0}}}}; };
  options_.warmup = true;
  options_.policy.max_tokens = 4096;
  const auto engine =
      Engine::Start(options_, FakeModelFactory("fake.Image", signature, compute, control_), model_);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_THAT(batches, ElementsAre(Pair(1, 1), Pair(1, 64 * 64)));
}

TEST_F(EngineTest, GivesUpWhatTakesTooLongToWarmUp) {
  control_->ComputeWithoutEnd();
  control_->on_step = [this] { clock_.Advance(std::chrono::seconds(2)); };
  options_.warmup = true;
  Start(clock_);
  EXPECT_EQ(control_->steps_done(), 9);  // three of each of three batches
  EXPECT_EQ(control_->forwards(), 0);
  control_->LetGo();
}

TEST_F(EngineTest, SaysAtTheStartThatThereIsNoMemoryForTheLongestSequence) {
  for (const int64_t length : {int64_t{1} << 40, int64_t{1} << 50}) {
    control_->longest = length;
    options_.warmup = true;
    EXPECT_THAT(Engine::Start(options_, FakeModelFactory(control_), model_),
                IsStatus(absl::StatusCode::kResourceExhausted,
                         "the model takes sequences of length " + std::to_string(length)));
  }
}

TEST_F(EngineTest, RunsAReplicaOnOneThreadFromLoadToDestruction) {
  options_.replicas = 2;
  options_.warmup = true;
  Start();
  EXPECT_TRUE(Submit(sink_, {1, 2, 3}).ok());
  sink_->AwaitDeliveries(3);
  engine_.reset();
  EXPECT_THAT(control_->threads(), SizeIs(2));
  EXPECT_FALSE(control_->threads().contains(std::this_thread::get_id()));
  EXPECT_EQ(control_->alive(), 0);
}

TEST_F(EngineTest, ReportsWhyAReplicaCouldNotBeLoaded) {
  options_.replicas = 3;
  std::atomic<int> loaded = 0;
  const ModelFactory fake = FakeModelFactory(control_);
  const ModelFactory factory = [&](int64_t replica) -> absl::StatusOr<std::unique_ptr<Model>> {
    if (loaded++ == 1) return absl::InvalidArgumentError("the weights do not fit");
    return fake(replica);
  };
  const auto engine = Engine::Start(options_, factory, model_);
  EXPECT_THAT(engine, IsStatus(absl::StatusCode::kInvalidArgument, "the weights do not fit"));
  EXPECT_EQ(control_->alive(), 0);
}

TEST_F(EngineTest, ReportsWhatALoadingModelThrows) {
  const auto throwing = [](auto error) {
    return [error](int64_t /*replica*/) -> absl::StatusOr<std::unique_ptr<Model>> { throw error; };
  };
  EXPECT_THAT(Engine::Start(options_, throwing(std::bad_alloc()), model_),
              IsStatus(absl::StatusCode::kResourceExhausted, "memory"));
  EXPECT_THAT(Engine::Start(options_, throwing(std::runtime_error("no such file")), model_),
              IsStatus(absl::StatusCode::kInternal, "no such file"));
}

TEST_F(EngineTest, ReportsAWarmUpThatFails) {
  options_.warmup = true;
  control_->fault = [](const Batch& batch) {
    return batch.rows == 64 ? Fault::kStepFails : Fault::kNone;
  };
  EXPECT_THAT(
      Engine::Start(options_, FakeModelFactory(control_), model_),
      IsStatus(absl::StatusCode::kInternal, "a sequence of length 64 failed: the step failed"));
}

}  // namespace
}  // namespace linserve
