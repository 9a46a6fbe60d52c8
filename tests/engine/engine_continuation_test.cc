#include <thread>

#include "engine/sessions/session_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

// Goes on for so many chunks of one row.
class Counted : public Continuation {
 public:
  explicit Counted(int64_t chunks) : left_(chunks) {}

  int64_t Rows() const override { return 3; }
  std::optional<TensorMap> Next(const ItemResult& /*result*/) override {
    if (left_-- == 0) return std::nullopt;
    return FakeItem(1).inputs;
  }

 private:
  int64_t left_;
};

class EngineContinuation : public EngineSession {
 protected:
  // Begins a session that goes on by itself.
  Sink Begin(const std::string& id, int64_t chunks, TimePoint deadline = TimePoint::max()) {
    auto sink = std::make_shared<RecordingSink>();
    Request request = Of(sink, {3}, deadline);
    request.items[0]->chunk =
        std::make_shared<const SessionChunk>(SessionChunk{.id = id, .start = true, .end = true});
    request.items[0]->then = std::make_shared<Counted>(chunks);
    EXPECT_TRUE(engine_->Submit(request).ok());
    return sink;
  }
};

TEST_F(EngineContinuation, EndsWithTheResultOfItsLastChunk) {
  Start();
  const auto result = Begin("a", 4)->Await(0);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->position, 7);
  EXPECT_EQ(Rows(result), RowsAfter(6, 1));
  EXPECT_EQ(Metric("sessions"), 0);
  EXPECT_EQ(Results("OK"), 1);
  EXPECT_EQ(control_->batch_sizes().size(), 5u);
}

// Has no memory to go on.
class Starved : public Continuation {
 public:
  int64_t Rows() const override { return 3; }
  std::optional<TensorMap> Next(const ItemResult& /*result*/) override { throw std::bad_alloc(); }
};

TEST_F(EngineContinuation, EndsWhereMemoryRunsOutAndItsNameIsFreeAgain) {
  Start();
  Request request = Of(sink_, {3});
  request.items[0]->chunk =
      std::make_shared<const SessionChunk>(SessionChunk{.id = "a", .start = true, .end = true});
  request.items[0]->then = std::make_shared<Starved>();
  EXPECT_TRUE(engine_->Submit(request).ok());
  EXPECT_THAT(sink_->Await(0), IsStatus(absl::StatusCode::kResourceExhausted, "memory"));
  EXPECT_TRUE(WaitUntil([&] { return Metric("sessions") == 0; }));
  EXPECT_EQ(Begin("a", 2)->Await(0)->position, 5);
}

TEST_F(EngineContinuation, WaitsForCompanyOnce) {
  options_.policy.max_delay = 10ms;
  Start(clock_);
  const Sink sink = Begin("a", 4);
  clock_.AwaitWaiters(kStart + 10ms);
  clock_.Advance(10ms);
  EXPECT_EQ(sink->Await(0)->position, 7);  // the clock stands still
}

TEST_F(EngineContinuation, ThoseThatRunAtOnceShareEachStep) {
  Start();
  Occupy();
  std::vector<Sink> sinks;
  for (const char* id : {"a", "b", "c"}) sinks.push_back(Begin(id, 2));
  control_->LetGo();
  for (const Sink& sink : sinks) EXPECT_EQ(sink->Await(0)->position, 5);
  EXPECT_THAT(control_->batch_sizes(), ElementsAre(1, 3, 3, 3));
}

TEST_F(EngineContinuation, KeepsItsTurnWhateverItsCallerSendsMeanwhile) {
  std::vector<int64_t> started;
  control_->fault = [&](const Batch& batch) {
    started.push_back(batch.rows);
    return Fault::kNone;
  };
  control_->before_slice = [this](const Batch& batch) { clock_.Advance(batch.rows * 10ms); };
  options_.policy.max_sequences = 1;
  Start(clock_);
  EXPECT_TRUE(EngineTest::Submit(sink_, {2}).ok());  // teaches the engine its speed
  EXPECT_TRUE(sink_->Await(0).ok());
  control_->Hold();
  const Sink sink = Begin("a", 4);
  control_->AwaitHeld(1);
  const auto others = std::make_shared<RecordingSink>();
  EXPECT_TRUE(EngineTest::Submit(others, {5, 5, 5, 5}).ok());
  started.clear();
  control_->LetGo();
  EXPECT_EQ(sink->Await(0)->position, 7);
  others->AwaitDeliveries(4);
  EXPECT_THAT(started, ElementsAre(5, 1, 1, 1, 1, 5, 5, 5));
}

TEST_F(EngineContinuation, GoesOnWhileTheEngineDrains) {
  Start();
  control_->Hold();
  const Sink sink = Begin("a", 10);
  control_->AwaitHeld(1);
  engine_->StopAccepting();
  control_->LetGo();
  EXPECT_EQ(engine_->Drain(TimePoint::max()), 0u);
  EXPECT_EQ(sink->Await(0)->position, 13);
}

TEST_F(EngineContinuation, EndsAndIsForgottenWhenItsCallerLeavesOrAChunkFails) {
  std::atomic<int> chunks = 0;
  control_->fault = [&](const Batch& batch) {
    return batch.rows == 1 && ++chunks == 3 ? Fault::kStepFails : Fault::kNone;
  };
  Start();
  EXPECT_TRUE(absl::IsInternal(Begin("a", 10)->Await(0).status()));
  EXPECT_EQ(Metric("sessions"), 0);
  control_->Hold();
  const Sink left = Begin("a", 1000000);
  control_->AwaitHeld(1);
  left->Abandon();
  control_->LetGo();
  EXPECT_TRUE(absl::IsCancelled(left->Await(0).status()) || left->Await(0).ok());
  EXPECT_EQ(Metric("sessions"), 0);
}

TEST_F(EngineContinuation, EndsWhereTheModelTakesNoMore) {
  Start();
  EXPECT_THAT(Begin("a", 1000)->Await(0), IsInvalid("has read 64 rows; the model takes 64 in all"));
  EXPECT_EQ(Metric("sessions"), 0);
}

TEST_F(EngineContinuation, IsGivenUpAndCountedAtTheDeadlineOfADrain) {
  Start(clock_);
  control_->Hold();
  const Sink sink = Begin("a", 1000);
  control_->AwaitHeld(1);
  const TimePoint deadline = clock_.Now() + 30s;
  std::jthread drain([&] { EXPECT_EQ(engine_->Drain(deadline), 1u); });
  clock_.AwaitWaiters(deadline);
  clock_.Advance(30s);
  drain.join();
  // The step that is computed need not end for that.
  EXPECT_THAT(sink->Of(0), ElementsAre(IsStatus(absl::StatusCode::kUnavailable, "draining")));
  EXPECT_EQ(Results("UNAVAILABLE"), 1);
  control_->LetGo();
  EXPECT_TRUE(WaitUntil([&] { return Metric("sessions") == 0; }));
  EXPECT_EQ(control_->batch_sizes().size(), 1u);
}

TEST_F(EngineContinuation, EndsAtItsDeadlineBetweenTwoTokens) {
  Start(clock_);
  control_->Hold();
  const Sink sink = Begin("a", 1000, clock_.Now() + 5ms);
  control_->AwaitHeld(1);
  control_->Allow(2);
  EXPECT_TRUE(control_->WaitForStarted(3));
  clock_.Advance(5ms);
  EXPECT_THAT(sink->Await(0), IsStatus(absl::StatusCode::kDeadlineExceeded, "deadline passed"));
  control_->LetGo();
  EXPECT_TRUE(WaitUntil([&] { return Metric("sessions") == 0; }));
  EXPECT_EQ(control_->batch_sizes().size(), 3u);
}

}  // namespace
}  // namespace linserve
