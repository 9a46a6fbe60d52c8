#include <random>
#include <thread>

#include "core/status/retry_delay.h"
#include "engine/sessions/session_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(EngineSession, GoesOnWhereTheChunkBeforeEnded) {
  Start();
  EXPECT_EQ(Read({.id = "a", .start = true}, 3), 3);
  const auto second = Send({.id = "a", .position = 3}, 2)->Await(0);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Rows(second), RowsAfter(3, 2));
  EXPECT_EQ(second->position, 5);
  EXPECT_EQ(Read({.id = "a"}, 1), 6);
  EXPECT_EQ(Metric("sessions"), 1);
  EXPECT_GE(Metric("session_state_bytes"), kFakeSessionBytes);
  EXPECT_EQ(Read({.id = "a", .end = true}, 1), 7);
  EXPECT_EQ(Metric("sessions"), 0);
  EXPECT_EQ(Metric("session_state_bytes"), 0);
  EXPECT_EQ(Closed("ended"), 1);
}

TEST_F(EngineSession, StepsSayNothingOfTheSpeedOfOtherWork) {
  options_.replicas = 1;
  Start(clock_);
  const auto take = [&](const Sink& sink, std::chrono::milliseconds time) {
    control_->AwaitHeld(1);
    clock_.Advance(time);
    control_->LetGo();
    sink->AwaitDeliveries(1);
  };
  control_->Hold();
  const Sink step = Send({.id = "a", .start = true}, 1);
  take(step, 100ms);
  control_->Hold();
  const Sink held = Send({.id = "a"}, 1);
  control_->AwaitHeld(1);
  const Sink waiting = std::make_shared<RecordingSink>();
  EXPECT_TRUE(EngineTest::Submit(waiting, {50}).ok());
  EXPECT_EQ(engine_->DelayEstimate(), 0ns);
  control_->LetGo();
  waiting->AwaitDeliveries(1);
}

TEST_F(EngineSession, ChunksThatArriveMeanwhileAreComputedOneAfterAnother) {
  Start();
  control_->Hold();
  const Sink first = Send({.id = "a", .start = true}, 1);
  control_->AwaitHeld(1);
  std::vector<Sink> others;
  for (int i = 0; i < 5; ++i) others.push_back(Send({.id = "a"}, 2));
  control_->LetGo();
  int64_t before = 1;
  for (const Sink& sink : others) {
    EXPECT_EQ(Rows(sink->Await(0)), RowsAfter(before, 2));
    before += 2;
  }
  EXPECT_THAT(control_->batch_sizes(), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST_F(EngineSession, ChunksOfSeveralSessionsShareABatch) {
  Start();
  Occupy();
  std::vector<Sink> sinks;
  for (const char* id : {"a", "b", "c"}) sinks.push_back(Send({.id = id, .start = true}, 2));
  EXPECT_TRUE(EngineTest::Submit(sink_, {2}).ok());  // a whole sequence does not
  control_->LetGo();
  for (const Sink& sink : sinks) EXPECT_EQ(sink->Await(0)->position, 2);
  sink_->AwaitDeliveries(1);
  EXPECT_THAT(control_->batch_sizes(), ElementsAre(1, 3, 1));
}

TEST_F(EngineSession, ThatIsNotKnownIsRefusedWithTheRowToGoOnFrom) {
  Start();
  EXPECT_THAT(Refused({.id = "a"}, 1), ResumesAt(0, "session 'a' is not known"));
  Read({.id = "a", .start = true}, 4);
  EXPECT_THAT(Refused({.id = "a", .position = 2}, 1), ResumesAt(4, "has read 4 rows"));
  EXPECT_EQ(Read({.id = "a", .end = true, .position = 4}, 1), 5);
  EXPECT_THAT(Refused({.id = "a"}, 1), ResumesAt(0, "has ended, after 5 rows"));
}

TEST_F(EngineSession, CannotBeOfAModelThatHasNone) {
  control_->sessions = false;
  Start();
  const absl::Status status = Refused({.id = "a", .start = true}, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("fake.Model has no sessions"), HasSubstr("told to have none")));
}

TEST_F(EngineSession, OfOneCallerIsNotThatOfAnother) {
  Start();
  EXPECT_EQ(Read({.id = "a", .start = true}, 2, "one"), 2);
  EXPECT_EQ(Read({.id = "a", .start = true}, 5, "two"), 5);
  EXPECT_EQ(Read({.id = "a"}, 1, "one"), 3);
  EXPECT_THAT(Refused({.id = "a"}, 1, "three"), ResumesAt(0, "not known"));
}

TEST_F(EngineSession, IsLeftAsItWasByAChunkThatFailsAndThoseThatFollowFailToo) {
  std::atomic<bool> fail = false;
  control_->fault = [&](const Batch&) { return fail ? Fault::kStepFails : Fault::kNone; };
  Start();
  Read({.id = "a", .start = true}, 3);
  fail = true;
  control_->Hold();
  const Sink failing = Send({.id = "a"}, 2);
  control_->AwaitHeld(1);
  const Sink second = Send({.id = "a"}, 1);
  const Sink third = Send({.id = "a"}, 1);
  control_->LetGo();
  EXPECT_TRUE(absl::IsInternal(failing->Await(0).status()));
  for (const Sink& sink : {second, third}) {
    EXPECT_THAT(sink->Await(0).status(), ResumesAt(3, "was not computed"));
  }
  fail = false;
  EXPECT_EQ(Read({.id = "a", .position = 3}, 2), 5);
}

TEST_F(EngineSession, IsLeftAsItWasByAChunkWhoseCallerLeavesMeanwhile) {
  control_->steps = 2;
  Start();
  Read({.id = "a", .start = true}, 3);
  control_->Hold();
  const Sink left = Send({.id = "a"}, 2);
  control_->AwaitHeld(1);
  left->Abandon();
  control_->LetGo();
  EXPECT_TRUE(absl::IsCancelled(left->Await(0).status()));
  EXPECT_EQ(Read({.id = "a", .position = 3}, 1), 4);
}

TEST_F(EngineSession, ThatWasNotUsedForLongestGoesWhereThereIsNoRoom) {
  options_.sessions.max_bytes = 5 * kFakeSessionBytes / 2;
  Start();
  Read({.id = "a", .start = true}, 1);
  Read({.id = "b", .start = true}, 1);
  Read({.id = "a"}, 1);
  Read({.id = "c", .start = true}, 1);
  EXPECT_EQ(Metric("sessions"), 2);
  EXPECT_EQ(Closed("evicted"), 1);
  EXPECT_THAT(Refused({.id = "b"}, 1), ResumesAt(0,
                                                 "was evicted for others (max_session_bytes), "
                                                 "after 1 rows"));
  EXPECT_EQ(Read({.id = "a"}, 1), 3);
}

TEST_F(EngineSession, OfTheCallerWithTheMostGoesWhereTheModelHasNoRoom) {
  options_.sessions.max_bytes = 7 * kFakeSessionBytes / 2;
  Start();
  Read({.id = "a", .start = true}, 1, "little");
  for (const char* id : {"a", "b", "c"}) Read({.id = id, .start = true}, 1, "much");
  EXPECT_EQ(Closed("evicted"), 1);
  EXPECT_EQ(Read({.id = "a"}, 1, "little"), 2);
  EXPECT_THAT(Refused({.id = "a"}, 1, "much"), ResumesAt(0, "evicted for others"));
  Read({.id = "b", .start = true}, 1, "little");
  Read({.id = "c", .start = true}, 1, "little");  // now this one has as many as anybody
  EXPECT_THAT(Refused({.id = "a"}, 1, "little"), ResumesAt(0, "evicted for others"));
  EXPECT_EQ(Read({.id = "c"}, 1, "much"), 2);
}

TEST_F(EngineSession, ThatIsBeingComputedIsNotEvicted) {
  options_.sessions.max_bytes = 3 * kFakeSessionBytes / 2;
  Start();
  control_->Hold();
  const Sink first = Send({.id = "a", .start = true}, 1);
  control_->AwaitHeld(1);
  const absl::Status refused = Refused({.id = "b", .start = true}, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("max_session_bytes"));
  EXPECT_TRUE(RetryDelayOf(refused).has_value());
  EXPECT_EQ(Metric("rejected_total", R"(reason="sessions",)"), 1);
  control_->LetGo();
  EXPECT_EQ(first->Await(0)->position, 1);
  EXPECT_EQ(Read({.id = "b", .start = true}, 1), 1);
}

TEST_F(EngineSession, ExpiresOnceItWasNotUsedForSoLong) {
  options_.sessions.max_idle = 10s;
  Start(clock_);
  Read({.id = "old", .start = true}, 3);
  clock_.Advance(6s);
  Read({.id = "young", .start = true}, 3);
  clock_.Advance(5s);
  EXPECT_TRUE(WaitUntil([&] { return Metric("sessions") == 1; }));
  EXPECT_EQ(Closed("expired"), 1);
  EXPECT_THAT(Refused({.id = "old"}, 1),
              ResumesAt(0, "was not used for too long (session_idle_seconds), after 3 rows"));
  EXPECT_EQ(Read({.id = "young"}, 1), 4);
}

TEST_F(EngineSession, BeginsAnewWhenItIsStartedAgain) {
  Start();
  Read({.id = "a", .start = true}, 3);
  EXPECT_EQ(Read({.id = "a", .start = true}, 1), 1);
  EXPECT_EQ(Metric("sessions"), 1);
  EXPECT_EQ(Closed("restarted"), 1);
  EXPECT_EQ(Opened("start"), 2);
}

TEST_F(EngineSession, WhoseFirstChunkFailsIsNotKept) {
  Start();
  EXPECT_THAT(Send({.id = "a", .start = true}, 65)->Await(0), IsInvalid("64"));
  EXPECT_EQ(Metric("sessions"), 0);
  EXPECT_EQ(Read({.id = "a", .start = true}, 60), 60);
  EXPECT_THAT(Send({.id = "a"}, 5)->Await(0),
              IsInvalid("has read 60 rows; the model takes 64 in all"));
  EXPECT_EQ(Read({.id = "a"}, 4), 64);
}

TEST_F(EngineSession, GoesOnFromItsSavedState) {
  Start();
  const auto saved = Send({.id = "a", .start = true, .end = true, .save = true}, 3)->Await(0);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->session, "fake 3");
  const auto moved = Send({.id = "b", .start = true, .state = saved->session}, 2)->Await(0);
  EXPECT_EQ(Rows(moved), RowsAfter(3, 2));
  EXPECT_EQ(Opened("restore"), 1);
  EXPECT_THAT(Send({.id = "c", .start = true, .state = "x"}, 1)->Await(0),
              IsInvalid("no saved session"));
  EXPECT_THAT(Send({.id = "b", .state = "fake 3"}, 1)->Await(0), IsInvalid("without start"));
  // This fails if the state has moved between threads.
  EXPECT_EQ(control_->threads().size(), 1u);
}

TEST_F(EngineSession, ChunksThatWereAcceptedAreComputedWhileTheEngineDrains) {
  Start();
  control_->Hold();
  std::vector<Sink> sinks = {Send({.id = "a", .start = true}, 1)};
  control_->AwaitHeld(1);
  for (int i = 0; i < 3; ++i) sinks.push_back(Send({.id = "a"}, 1));
  engine_->StopAccepting();
  control_->LetGo();
  EXPECT_EQ(engine_->Drain(TimePoint::max()), 0u);
  for (size_t i = 0; i < sinks.size(); ++i) {
    EXPECT_EQ(sinks[i]->Await(0)->position, static_cast<int64_t>(i + 1));
  }
}

TEST_F(EngineSession, IsLostWithItsDevice) {
  std::atomic<bool> lose = false;
  control_->fault = [&](const Batch&) { return lose ? Fault::kDeviceLost : Fault::kNone; };
  Start();
  Read({.id = "a", .start = true}, 2);
  Read({.id = "b", .start = true}, 2);
  lose = true;
  EXPECT_TRUE(absl::IsUnavailable(Refused({.id = "a"}, 1)));
  EXPECT_TRUE(WaitUntil([&] { return Closed("lost") == 2; }));
  lose = false;
  EXPECT_TRUE(WaitUntil([&] { return Metric("replicas_lost") == 0; }));
  EXPECT_THAT(Refused({.id = "b"}, 1), ResumesAt(0, "was lost with the device"));
}

TEST_F(EngineSession, OutlivesTheLossOfAnotherDevice) {
  std::atomic<bool> lose = false;
  control_->fault = [&](const Batch&) { return lose ? Fault::kDeviceLost : Fault::kNone; };
  options_.replicas = 2;
  Start();
  control_->Hold();
  const Sink a = Send({.id = "a", .start = true}, 2);
  control_->AwaitHeld(1);
  const Sink b = Send({.id = "b", .start = true}, 2);
  control_->AwaitHeld(2);  // by both replicas
  control_->LetGo();
  EXPECT_TRUE(a->Await(0).ok() && b->Await(0).ok());
  lose = true;
  EXPECT_TRUE(absl::IsUnavailable(Refused({.id = "a"}, 1)));
  EXPECT_TRUE(WaitUntil([&] { return Closed("lost") == 1; }));
  lose = false;
  EXPECT_EQ(Metric("sessions"), 1);
  // Either replica may have taken the chunk.
  const bool a_is_left = Send({.id = "a"}, 1)->Await(0).ok();
  EXPECT_EQ(Send({.id = "b"}, 1)->Await(0).ok(), !a_is_left);
}

TEST_F(EngineSession, ChunksOfManyThreadsAreEachReadOnceAndInOrder) {
  constexpr int kThreads = 6;
  constexpr int kChunks = 60;
  options_.replicas = 2;
  options_.limits.max_sequences = 8;
  options_.sessions.max_bytes = 4 * kFakeSessionBytes;
  control_->fault = [](const Batch& batch) {
    return batch.rows % 13 == 5 ? Fault::kStepFails : Fault::kNone;
  };
  Start();
  std::atomic<int> answers = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        int64_t position = 0;
        for (int i = 0; i < kChunks; ++i) {
          // Some threads share a session, so that chunks meet.
          SessionChunk chunk{.id = std::to_string(t / 2), .start = position == 0};
          if (t % 2 == 0) chunk.position = position;
          const int64_t length = 1 + static_cast<int64_t>(random() % 3);
          const auto sink = std::make_shared<RecordingSink>();
          Request request = Of(sink, {length});
          request.items[0]->chunk = std::make_shared<const SessionChunk>(chunk);
          ASSERT_TRUE(engine_->Submit(request).ok());
          const auto result = sink->Await(0);
          ++answers;
          if (result.ok()) {
            position = result->position;
            EXPECT_EQ(Rows(result), RowsAfter(position - length, length));
          } else {
            position = ResumePosition(result.status()).value_or(0);
          }
          EXPECT_THAT(sink->Of(0), testing::SizeIs(1));
          if (position > kFakeLongest - 4) position = 0;
        }
      });
    }
  }
  EXPECT_EQ(answers, kThreads * kChunks);
  double delivered = 0;
  // INVALID_ARGUMENT means that another thread has moved the session close to the longest.
  for (const char* code :
       {"OK", "INTERNAL", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"}) {
    delivered += Results(code);
  }
  EXPECT_EQ(delivered, kThreads * kChunks);
  EXPECT_EQ(Metric("sessions"),
            Opened("start") - Closed("ended") - Closed("evicted") - Closed("restarted"));
}

}  // namespace
}  // namespace linserve
