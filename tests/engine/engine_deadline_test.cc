#include <random>
#include <thread>

#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using EngineDeadline = EngineTest;

TEST_F(EngineDeadline, OfWhatIsQueuedIsMetWhileTheWorkerComputes) {
  Start(clock_);
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2}, clock_.Now() + 5ms).ok());
  clock_.Advance(4ms);
  EXPECT_EQ(sink_->delivered(), 0u);
  clock_.Advance(1ms);
  sink_->AwaitDeliveries(2);
  EXPECT_EQ(occupant_->delivered(), 0u);
  for (const size_t i : {0, 1}) {
    EXPECT_THAT(sink_->Of(i), ElementsAre(IsStatus(absl::StatusCode::kDeadlineExceeded, "passed")));
  }
  // It takes no room any more.
  EXPECT_TRUE(WaitUntil([&] { return Metric("queue_sequences") == 0; }));
  EXPECT_EQ(Metric("abandoned_total", R"(stage="queue",)"), 2);
  control_->LetGo();
  EXPECT_TRUE(occupant_->Await(0).ok());
  EXPECT_EQ(control_->batch_sizes().size(), 1u);
}

TEST_F(EngineDeadline, OfOneAfterAnotherLeavesNothingQueuedThatIsAnswered) {
  Start(clock_);
  Occupy();
  for (const auto wait : {5ms, 10ms}) EXPECT_TRUE(Submit(sink_, {1}, kStart + wait).ok());
  clock_.Advance(5ms);
  EXPECT_TRUE(WaitUntil([&] { return Metric("queue_sequences") == 1; }));
  clock_.Advance(5ms);  // the queue is not searched again as soon as that
  EXPECT_TRUE(WaitUntil([&] {
    clock_.Advance(10ms);
    return Metric("queue_sequences") == 0;
  }));
  control_->LetGo();
}

TEST_F(EngineDeadline, OfWhatIsBeingComputedIsMetToo) {
  control_->steps = 2;
  Start(clock_);
  control_->Hold();
  EXPECT_TRUE(Submit(sink_, {1}, clock_.Now() + 5ms).ok());
  control_->AwaitHeld(1);
  clock_.Advance(5ms);
  EXPECT_THAT(sink_->Await(0), IsStatus(absl::StatusCode::kDeadlineExceeded, "passed"));
  control_->LetGo();
  engine_.reset();
  EXPECT_EQ(control_->steps_done(), 1);
  EXPECT_THAT(sink_->Of(0), SizeIs(1));
}

TEST_F(EngineDeadline, OfOneRequestIsNotThatOfAnother) {
  Start(clock_);
  Occupy();
  const auto early = std::make_shared<RecordingSink>();
  const auto never = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Submit(sink_, {1}, clock_.Now() + 9ms).ok());
  EXPECT_TRUE(Submit(never, {1}).ok());
  EXPECT_TRUE(Submit(early, {1}, clock_.Now() + 5ms).ok());
  clock_.Advance(5ms);
  early->AwaitDeliveries(1);
  EXPECT_EQ(sink_->delivered(), 0u);
  clock_.Advance(4ms);
  sink_->AwaitDeliveries(1);
  control_->LetGo();
  EXPECT_TRUE(never->Await(0).ok());
}

TEST_F(EngineDeadline, LetsGoOfTheRequestThatIsAnswered) {
  Start(clock_);
  Occupy();
  std::weak_ptr<RecordingSink> request;
  {
    const auto sink = std::make_shared<RecordingSink>();
    request = sink;
    EXPECT_TRUE(Submit(sink, {1}, clock_.Now() + 5ms).ok());
  }
  EXPECT_FALSE(request.expired());
  clock_.Advance(5ms);
  EXPECT_TRUE(WaitUntil([&] { return request.expired(); }));
  control_->LetGo();
}

TEST_F(EngineDeadline, RacesWithResultsAndEachIsAnsweredOnce) {
  options_.replicas = 2;
  control_->steps = 2;
  Start();
  std::vector<std::jthread> callers;
  for (unsigned thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&, thread] {
      std::mt19937 random(thread);
      for (int i = 0; i < 300; ++i) {
        const auto sink = std::make_shared<RecordingSink>();
        const TimePoint deadline = SteadyClock().Now() + std::chrono::microseconds(random() % 400);
        if (!Submit(sink, {1, 2, 3}, deadline).ok()) continue;
        sink->AwaitDeliveries(3);
        for (size_t j = 0; j < 3; ++j) {
          const auto results = sink->Of(j);
          ASSERT_THAT(results, SizeIs(1));
          if (results[0].ok()) {
            EXPECT_EQ(Rows(results[0]), FakeResult(static_cast<int64_t>(j) + 1));
          }
        }
      }
    });
  }
  callers.clear();
  engine_.reset();
}

TEST_F(EngineDeadline, OfADrainEndsAPassThatIsNotAtItsEnd) {
  control_->slices = 1000000;
  Start();
  Occupy();
  EXPECT_EQ(engine_->Drain(SteadyClock().Now()), 0u);
  control_->LetGo();
  EXPECT_THAT(occupant_->Await(0), IsStatus(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_LT(control_->steps_done(), 10);
}

TEST_F(EngineDeadline, OrTheCallersLeavingEndsTheMakingOfResults) {
  control_->shares = 1000000;
  int shares = 0;
  control_->on_share = [&] {
    if (++shares == 3) sink_->Abandon();
  };
  Start();
  EXPECT_TRUE(Submit(sink_, {1}).ok());
  EXPECT_THAT(sink_->Await(0), IsStatus(absl::StatusCode::kCancelled, "the caller left"));
  EXPECT_EQ(shares, 3);
}

class EngineSpeed : public EngineTest {
 protected:
  // Computes one token, in which a step takes this time, and a share of the results that.
  void Compute(std::chrono::nanoseconds step, std::chrono::nanoseconds share) {
    control_->on_step = [this, step] { clock_.Advance(step); };
    control_->on_share = [this, share] { clock_.Advance(share); };
    const auto sink = std::make_shared<RecordingSink>();
    EXPECT_TRUE(Submit(sink, {1}).ok());
    sink->AwaitDeliveries(1);
  }

  // Returns the delay of a token that waits now.
  std::chrono::nanoseconds DelayOfOne() {
    control_->on_step = control_->on_share = [] {};
    Occupy();
    EXPECT_TRUE(Submit(sink_, {1}).ok());
    const auto delay = engine_->DelayEstimate();
    control_->LetGo();
    engine_.reset();
    return delay;
  }
};

TEST_F(EngineSpeed, IsThatOfTheForwardPassWithoutItsResults) {
  control_->shares = 3;
  Start(clock_);
  Compute(4ms, 100ms);
  EXPECT_EQ(DelayOfOne(), 4ms);
}

TEST_F(EngineSpeed, IsNotLearntFromAPassThatWasCutShort) {
  const auto left = std::make_shared<RecordingSink>();
  std::chrono::nanoseconds step = 0ms;
  control_->steps = 3;
  control_->fault = [&](const Batch& batch) {
    step = batch.size() == 1 ? 4ms : 1s;
    if (batch.size() == 2) left->Abandon();
    return Fault::kNone;
  };
  control_->on_step = [&] { clock_.Advance(step); };
  Start(clock_);
  Occupy();
  const auto stays = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Submit(left, {30}).ok());
  EXPECT_TRUE(Submit(stays, {1}).ok());
  control_->LetGo();
  stays->AwaitDeliveries(1);
  occupant_ = std::make_shared<RecordingSink>();
  EXPECT_EQ(DelayOfOne(), 12ms);
}

TEST_F(EngineSpeed, IsNotLearntFromABatchThatFails) {
  Start(clock_);
  Compute(4ms, 0ms);
  control_->fault = [](const Batch&) { return Fault::kStepFails; };
  Compute(10s, 0ms);
  control_->fault = [](const Batch&) { return Fault::kNone; };
  EXPECT_EQ(DelayOfOne(), 4ms);
}

}  // namespace
}  // namespace linserve
