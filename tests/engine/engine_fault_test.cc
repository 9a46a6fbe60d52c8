#include <algorithm>
#include <atomic>
#include <limits>

#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using EngineFault = EngineTest;
using EngineDeparture = EngineTest;

TEST_F(EngineFault, OfOneSequenceLeavesItsNeighboursAlone) {
  Start();
  Request request = Of(sink_, {2, 65, 3, 1});
  request.items[3]->inputs["x"] =
      Tensor::FromFloats({1, 2}, {1, std::numeric_limits<float>::quiet_NaN()});
  request.items.emplace_back(absl::InvalidArgumentError("broken on the wire"));
  ASSERT_TRUE(engine_->Submit(request).ok());
  sink_->AwaitDeliveries(5);
  EXPECT_EQ(Rows(sink_->Await(0)), FakeResult(2));
  EXPECT_EQ(Rows(sink_->Await(2)), FakeResult(3));
  EXPECT_THAT(sink_->Of(1), ElementsAre(IsInvalid("64")));
  EXPECT_THAT(sink_->Of(3), ElementsAre(IsInvalid("NaN")));
  EXPECT_THAT(sink_->Of(4), ElementsAre(IsInvalid("broken on the wire")));
  EXPECT_EQ(Metric("rejected_total", R"(reason="invalid",)"), 1);
}

TEST_F(EngineFault, OfAllSequencesIsAnsweredWithoutTheModel) {
  Start();
  EXPECT_TRUE(Submit(sink_, {0, 65}).ok());
  EXPECT_EQ(sink_->delivered(), 2u);
  EXPECT_THAT(control_->batch_sizes(), IsEmpty());
}

// Says how the model fails a batch, and what the callers are told.
struct FaultCase {
  Fault fault;
  absl::StatusCode code;
  const char* message;
};

class EngineModelFault : public EngineTest, public testing::WithParamInterface<FaultCase> {};

// No batch with a sequence of this length can be computed.
constexpr int64_t kCulprit = 7;

Fault IfWithCulprit(const Batch& batch, Fault fault) {
  const std::vector<int64_t>& lengths = batch.axes.at('n').lengths;
  return std::count(lengths.begin(), lengths.end(), kCulprit) > 0 ? fault : Fault::kNone;
}

TEST_P(EngineModelFault, FailsNoneButTheCulpritAndTheEngineGoesOn) {
  control_->fault = [](const Batch& batch) { return IfWithCulprit(batch, GetParam().fault); };
  for (const bool asynchronous : {false, true}) {
    control_->asynchronous = asynchronous;
    const auto sink = std::make_shared<RecordingSink>();
    Start();
    Occupy();
    EXPECT_TRUE(Submit(sink, {1, 2, 3, 4, kCulprit, 6}).ok());
    control_->LetGo();
    sink->AwaitDeliveries(6);
    EXPECT_THAT(sink->Of(4), ElementsAre(IsStatus(GetParam().code, GetParam().message)));
    for (const int64_t length : {1, 2, 3, 4, 6}) {
      EXPECT_EQ(Rows(sink->Await(static_cast<size_t>(length - 1))), FakeResult(length));
    }
    EXPECT_TRUE(Submit(sink, {1, 2, 3, 4, 5, 6, 7, 8}).ok());
    EXPECT_EQ(Rows(sink->Await(7)), FakeResult(8));
    engine_.reset();
  }
  EXPECT_EQ(Metric("abandoned_total", R"(stage="batch",)"), 0);
  const char* reason = GetParam().code == absl::StatusCode::kResourceExhausted ? "memory" : "fault";
  EXPECT_GT(SplitsFor(reason), 4);
}

TEST_F(EngineFault, ThatSplitsABatchCountsNothingTwice) {
  control_->fault = [](const Batch& batch) { return IfWithCulprit(batch, Fault::kStepFails); };
  Start();
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2, 3, kCulprit}).ok());
  control_->LetGo();
  sink_->AwaitDeliveries(4);
  EXPECT_EQ(SplitsFor("fault"), 2);
  EXPECT_EQ(Metric("sequences_total"), 5);
  EXPECT_EQ(Metric("tokens_total"), 1 + 13);
  EXPECT_EQ(Metric("batch_form_duration_seconds_count"), 2);
}

TEST_F(EngineFault, OfAWholeBatchIsLoggedInOneLine) {
  testing::internal::CaptureStderr();
  control_->fault = [](const Batch& batch) {
    return batch.rows > 1 ? Fault::kStepFails : Fault::kNone;
  };
  Start();
  Occupy();
  for (const char* id : {"p", "q"}) {
    Request request = Of(sink_, {2, 3});
    request.id = id;
    EXPECT_TRUE(engine_->Submit(request).ok());
  }
  control_->LetGo();
  sink_->AwaitDeliveries(4);
  engine_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr(
                       "forward pass failed request_id=p,q sequences=4 error=\"the step failed\""));
  EXPECT_EQ(log.find("forward pass failed"), log.rfind("forward pass failed"));
}

TEST_F(EngineFault, OfARequestThatIsAUnitIsNotLookedForInItsParts) {
  control_->request_is_unit = true;
  control_->fault = [](const Batch& batch) {
    return batch.size() == 2 ? Fault::kStepFails : Fault::kNone;
  };
  Start();
  EXPECT_TRUE(Submit(sink_, {2, 2}).ok());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(sink_->Await(i), IsStatus(absl::StatusCode::kInternal, "the step failed"));
  }
  EXPECT_EQ(SplitsFor("fault"), 0);
}

TEST_F(EngineFault, OfTheDeviceMakesTheReplicaLoadAgain) {
  std::atomic<int> changes = 0;
  options_.on_ready_change = [&] { ++changes; };
  control_->fault = [](const Batch& batch) { return IfWithCulprit(batch, Fault::kDeviceLost); };
  Start();
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, kCulprit, 2}).ok());
  control_->LetGo();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(sink_->Await(i), IsStatus(absl::StatusCode::kUnavailable, "the device failed"));
  }
  EXPECT_TRUE(WaitUntil([&] { return changes == 2; }));
  EXPECT_TRUE(engine_->ready());
  const auto later = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Submit(later, {5}).ok());
  EXPECT_EQ(Rows(later->Await(0)), FakeResult(5));
  EXPECT_EQ(control_->alive(), 1);
}

TEST_F(EngineFault, OfTheDeviceForGoodRefusesRequestsAndSaysThatTheProcessIsStuck) {
  std::atomic<bool> gone = false;
  control_->fault = [](const Batch&) { return Fault::kDeviceLost; };
  control_->load = [&] {
    return gone.exchange(true) ? absl::UnavailableError("no such device") : absl::OkStatus();
  };
  Start(clock_);
  EXPECT_TRUE(Submit(sink_, {1}).ok());
  EXPECT_THAT(sink_->Await(0), IsStatus(absl::StatusCode::kUnavailable, "the device failed"));
  EXPECT_TRUE(WaitUntil([&] { return !engine_->ready(); }));
  EXPECT_THAT(Submit(sink_, {1}), IsStatus(absl::StatusCode::kUnavailable, "device was lost"));
  EXPECT_TRUE(WaitUntil([&] {
    clock_.Advance(1s);
    return engine_->stuck();
  }));
  EXPECT_EQ(Metric("replicas"), 1);
  EXPECT_EQ(Metric("replicas_lost"), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, EngineModelFault,
    testing::Values(FaultCase{Fault::kStartFails, absl::StatusCode::kInternal, "the start failed"},
                    FaultCase{Fault::kStepFails, absl::StatusCode::kInternal, "the step failed"},
                    FaultCase{Fault::kBadAlloc, absl::StatusCode::kResourceExhausted,
                              "memory for the forward pass"},
                    FaultCase{Fault::kThrows, absl::StatusCode::kInternal, "the model threw"},
                    FaultCase{Fault::kTooFewResults, absl::StatusCode::kInternal,
                              "0 results for 1"}));

TEST_F(EngineDeparture, BetweenTwoStepsEndsAForwardPassThatNobodyWaitsFor) {
  control_->steps = 1000;
  Start();
  Occupy();
  occupant_->Abandon();
  control_->LetGo();
  EXPECT_THAT(occupant_->Await(0), IsStatus(absl::StatusCode::kCancelled, "the caller left"));
  EXPECT_EQ(control_->steps_done(), 1);
  EXPECT_EQ(Metric("abandoned_total", R"(stage="batch",)"), 1);
}

TEST_F(EngineDeparture, OfADeadlineEndsAForwardPassToo) {
  control_->steps = 1000;
  control_->fault = [&](const Batch& batch) {
    if (batch.size() == 3) control_->Hold();
    return Fault::kNone;
  };
  Start(clock_);
  Occupy();
  const auto hasty = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Submit(hasty, {1, 2}, clock_.Now() + 5ms).ok());
  EXPECT_TRUE(Submit(sink_, {1}).ok());
  occupant_->Abandon();
  control_->LetGo();
  occupant_->AwaitDeliveries(1);
  control_->AwaitHeld(1);
  clock_.Advance(5ms);
  sink_->Abandon();
  const int steps = control_->steps_done();
  control_->LetGo();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(hasty->Await(i),
                IsStatus(absl::StatusCode::kDeadlineExceeded, "the deadline passed"));
  }
  EXPECT_THAT(sink_->Await(0), IsStatus(absl::StatusCode::kCancelled, "the caller left"));
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(control_->steps_done(), 2);
  EXPECT_EQ(Metric("abandoned_total", R"(stage="batch",)"), 4);
}

class EngineDepartureOfSome : public EngineTest, public testing::WithParamInterface<bool> {};

// The parameter says whether the model can leave out what is left to compute for those who have
// left.
INSTANTIATE_TEST_SUITE_P(Models, EngineDepartureOfSome, testing::Bool());

TEST_P(EngineDepartureOfSome, LetsTheOthersHaveTheirResults) {
  control_->forgets = GetParam();
  const auto left = std::make_shared<RecordingSink>();
  control_->steps = 5;
  control_->fault = [&](const Batch& batch) {
    if (batch.size() == 2) left->Abandon();  // when the batch of both has begun
    return Fault::kNone;
  };
  Start();
  Occupy();
  EXPECT_TRUE(Submit(left, {1}).ok());
  EXPECT_TRUE(Submit(sink_, {2}).ok());
  control_->LetGo();
  EXPECT_EQ(Rows(sink_->Await(0)), FakeResult(2));
  EXPECT_THAT(left->Await(0), IsStatus(absl::StatusCode::kCancelled, "while the sequence was"));
  EXPECT_EQ(control_->steps_done(), 10);
  EXPECT_EQ(Metric("abandoned_total", R"(stage="batch",)"), 1);
  EXPECT_EQ(Metric("wasted_tokens_total"), GetParam() ? 0 : 1);
}

TEST_F(EngineDeparture, WhileQueuedKeepsASequenceFromTheModel) {
  Start();
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2}).ok());
  sink_->Abandon();
  control_->LetGo();
  sink_->AwaitDeliveries(2);
  EXPECT_THAT(sink_->Of(0), ElementsAre(IsStatus(absl::StatusCode::kCancelled, "queued")));
  EXPECT_EQ(control_->batch_sizes().size(), 1u);
  EXPECT_EQ(Metric("abandoned_total", R"(stage="queue",)"), 2);
}

}  // namespace
}  // namespace linserve
