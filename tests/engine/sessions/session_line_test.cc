#include "engine/sessions/session_fixture.h"
#include "engine/sessions/session_table.h"

namespace linserve {
namespace {

using testing::ElementsAre;

// Chunks that wait for others of their session.
class SessionLine : public EngineSession {
 protected:
  // Begins session "a", whose first chunk of one row a forward pass then holds on to.
  Sink Occupy() {
    control_->Hold();
    Sink first = Send({.id = "a", .start = true}, 1);
    control_->AwaitHeld(1);
    return first;
  }

  // Submits chunks of one request, all of this length.
  Sink SendTogether(const std::vector<SessionChunk>& chunks, int64_t length) {
    auto sink = std::make_shared<RecordingSink>();
    Request request = Of(sink, std::vector<int64_t>(chunks.size(), length));
    for (size_t i = 0; i < chunks.size(); ++i) {
      request.items[i]->chunk = std::make_shared<const SessionChunk>(chunks[i]);
    }
    EXPECT_TRUE(engine_->Submit(request).ok());
    return sink;
  }

  // Makes the next passes of chunks of so many rows fail.
  void FailRows(int64_t rows) {
    control_->fault = [this, rows](const Batch& batch) {
      return fails_ && batch.rows == rows ? Fault::kStepFails : Fault::kNone;
    };
  }

  // Gives a table of its own a chunk of one row, whose answer `sink_` gets by this index.
  void Take(SessionTable& table, const SessionChunk& chunk, size_t index) const {
    Pending pending{.item = FakeItem(1),
                    .origin = std::make_shared<RequestOrigin>(),
                    .delivery = Delivery(sink_, index)};
    pending.item.chunk = std::make_shared<const SessionChunk>(chunk);
    std::vector<ArrivedChunk> chunks;
    chunks.push_back({std::move(pending), absl::OkStatus()});
    table.Take(std::move(chunks));
  }

  std::atomic<bool> fails_ = true;
};

TEST_F(SessionLine, CountsAmongWhatIsQueued) {
  options_.limits.max_sequences = 10;
  Start();
  const Sink first = Occupy();
  std::vector<SessionChunk> many(100, SessionChunk{.id = "a"});
  const Sink sink = SendTogether(many, 1);
  EXPECT_EQ(Metric("queue_sequences"), 10);
  EXPECT_EQ(Metric("queue_tokens"), 10);
  EXPECT_EQ(Metric("queue_bytes"), 10 * 8);
  EXPECT_EQ(sink->delivered(), 90u);
  for (size_t i = 10; i < 100; ++i) {
    EXPECT_THAT(sink->Of(i), ElementsAre(IsStatus(absl::StatusCode::kResourceExhausted,
                                                  "exceed max_queue_sequences = 10")));
  }
  // Others find the queue full, too.
  EXPECT_THAT(EngineTest::Submit(sink_, {1}),
              IsStatus(absl::StatusCode::kResourceExhausted, "max_queue_sequences"));
  control_->LetGo();
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(sink->Await(i)->position, static_cast<int64_t>(i) + 2);
  }
  EXPECT_TRUE(WaitUntil([&] { return Metric("queue_sequences") == 0; }));
  EXPECT_EQ(Metric("queue_bytes"), 0);
  EXPECT_EQ(Metric("queue_requests"), 0);
}

TEST_F(SessionLine, IsBounded) {
  control_->longest = 1 << 20;
  Start();
  const Sink first = Occupy();
  const size_t most = kMostWaitingChunks;
  const Sink sink = SendTogether(std::vector<SessionChunk>(most + 2, SessionChunk{.id = "a"}), 1);
  EXPECT_EQ(sink->delivered(), 2u);
  EXPECT_THAT(sink->Of(most), ElementsAre(IsStatus(absl::StatusCode::kResourceExhausted,
                                                   "1024 chunks of the session wait")));
  control_->LetGo();
  EXPECT_EQ(sink->Await(most - 1)->position, static_cast<int64_t>(most) + 1);
}

TEST_F(SessionLine, TakesNothingBehindAChunkThatWasRefusedUntilItIsDone) {
  options_.limits.max_sequences = 2;
  Start();
  const Sink first = Occupy();
  const Sink waiting = SendTogether({{.id = "a"}, {.id = "a"}, {.id = "a"}}, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(waiting->Await(2).status()));
  const Sink start = Send({.id = "b", .start = true}, 1);  // there is no room for this either
  EXPECT_TRUE(absl::IsResourceExhausted(start->Await(0).status()));
  control_->Allow(1);
  EXPECT_EQ(first->Await(0)->position, 1);
  control_->AwaitHeld(1);
  // There is room by now, but the chunk would follow rows that were not read.
  EXPECT_TRUE(absl::IsResourceExhausted(Refused({.id = "a"}, 1)));
  control_->LetGo();
  EXPECT_EQ(waiting->Await(1)->position, 3);
  EXPECT_EQ(Read({.id = "a", .position = 3}, 1), 4);
}

TEST_F(SessionLine, ReadsNothingBehindAChunkOfTheSameRequestThatIsRefusedAtOnce) {
  Start();
  for (const SessionChunk& refused :
       {SessionChunk{.id = "a", .position = 7},                         // it is elsewhere
        SessionChunk{.id = "a", .start = true, .state = "x"},           // no saved session
        SessionChunk{.id = "a", .start = true, .state = "fake 64"}}) {  // it becomes too long
    EXPECT_EQ(Read({.id = "a", .start = true}, 3), 3);
    const Sink together = SendTogether({refused, {.id = "a"}, {.id = "a"}}, 1);
    EXPECT_FALSE(together->Await(0).ok());
    EXPECT_THAT(together->Await(1).status(), IsStatus(absl::StatusCode::kFailedPrecondition, ""));
    EXPECT_THAT(together->Await(2).status(), IsStatus(absl::StatusCode::kFailedPrecondition, ""));
    EXPECT_EQ(Read({.id = "a", .position = 3}, 1), 4);
  }
}

TEST_F(SessionLine, ReadsNothingBehindAChunkThatTheQueueRefuses) {
  options_.limits.max_sequences = 2;
  Start();
  EXPECT_EQ(Read({.id = "a", .start = true}, 3), 3);
  // The queue has room for two: these are the first ones, and not those that wait for them.
  const Sink two = SendTogether({{.id = "a"}, {.id = "a"}, {.id = "a"}}, 1);
  EXPECT_EQ(two->Await(0)->position, 4);
  EXPECT_EQ(two->Await(1)->position, 5);
  EXPECT_TRUE(absl::IsResourceExhausted(two->Await(2).status()));
  control_->Hold();
  const Sink other = Send({.id = "b", .start = true}, 1);
  control_->AwaitHeld(1);
  const Sink full = SendTogether({{.id = "c", .start = true}, {.id = "d", .start = true}}, 1);
  const Sink none = SendTogether({{.id = "a"}, {.id = "a"}}, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(none->Await(0).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(none->Await(1).status()));
  control_->LetGo();
  EXPECT_EQ(full->Await(1)->position, 1);
  EXPECT_EQ(Read({.id = "a", .position = 5}, 1), 6);
}

TEST_F(SessionLine, GoesOnBehindAChunkThatWasReadButCouldNotBeSaved) {
  Start();
  EXPECT_EQ(Read({.id = "a", .start = true}, 2), 2);
  control_->saves = false;
  const Sink together = SendTogether({{.id = "a", .save = true}, {.id = "a"}}, 3);
  const absl::Status unsaved = together->Await(0).status();
  EXPECT_THAT(unsaved, IsStatus(absl::StatusCode::kResourceExhausted,
                                "no memory to save it: the session has read the chunk"));
  EXPECT_EQ(ResumePosition(unsaved), 5);
  EXPECT_EQ(together->Await(1)->position, 8);
  control_->saves = true;
  const Sink saved = Send({.id = "a", .save = true, .position = 8}, 1);
  EXPECT_EQ(saved->Await(0)->session, "fake 9");
}

TEST_F(SessionLine, SaysNothingOfGoingOnWhereAnUnsavedChunkWasTheLast) {
  Start();
  EXPECT_EQ(Read({.id = "a", .start = true}, 2), 2);
  control_->saves = false;
  const absl::Status unsaved = Refused({.id = "a", .end = true, .save = true}, 3);
  EXPECT_EQ(unsaved, absl::ResourceExhaustedError("no memory to save it"));
  EXPECT_THAT(Refused({.id = "a"}, 1), ResumesAt(0, "has ended, after 5 rows"));
}

// The queue refuses the chunk while the session ends the one before it.
TEST_F(SessionLine, LetsNobodyInWhomTheQueueHasRefusedAndCountedSo) {
  Start();
  std::vector<Pending> computing;
  const auto table = std::make_shared<SessionTable>(
      SessionLimits(), engine_->info().sessions, engine_->info().signature,
      [&](Pending& chunk, bool /*next*/) {
        computing.push_back(std::move(chunk));
        return absl::OkStatus();
      },
      [&](Pending& /*chunk*/) {
        computing[0].delivery.Complete(absl::AbortedError("the pass failed"));
        return absl::ResourceExhaustedError("the queue is full");
      },
      clock_, model_);
  Take(*table, {.id = "a", .start = true}, 0);
  ASSERT_EQ(computing.size(), 1);
  Take(*table, {.id = "a"}, 1);
  EXPECT_TRUE(absl::IsAborted(sink_->Await(0).status()));
  EXPECT_THAT(sink_->Await(1), IsStatus(absl::StatusCode::kResourceExhausted, "queue is full"));
  EXPECT_EQ(computing.size(), 1);
}

TEST_F(SessionLine, IsRefusedFromItsBeginningToItsEndWithoutARefusalWithinAnother) {
  Start();
  std::vector<Pending> computing;
  std::vector<uintptr_t> stack;
  const auto table = std::make_shared<SessionTable>(
      SessionLimits(), engine_->info().sessions, engine_->info().signature,
      [&](Pending& chunk, bool /*next*/) -> absl::Status {
        stack.push_back(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
        if (stack.size() > 1) return absl::ResourceExhaustedError("the queue is full");
        computing.push_back(std::move(chunk));
        return absl::OkStatus();
      },
      [](Pending& /*chunk*/) { return absl::OkStatus(); }, clock_, model_);
  for (size_t i = 0; i < 100; ++i) Take(*table, {.id = "a", .start = true}, i);
  computing[0].delivery.Complete(absl::AbortedError("the pass failed"));
  EXPECT_TRUE(absl::IsAborted(sink_->Await(0).status()));
  for (size_t i = 1; i < 100; ++i) {
    EXPECT_THAT(sink_->Await(i), IsStatus(absl::StatusCode::kResourceExhausted, "queue is full"));
  }
  ASSERT_EQ(stack.size(), 100);
  EXPECT_EQ(stack.back(), stack[1]);
}

TEST_F(SessionLine, FailsBehindAFaultyChunkWhetherTheSessionRestsOrNot) {
  Start();
  const Sink first = Occupy();
  const Sink together = SendTogether({{.id = "a"}, {.id = "a"}}, 65);  // which are too long
  EXPECT_THAT(together->Await(0), IsInvalid("65"));
  EXPECT_EQ(Refused({.id = "a"}, 1).code(), absl::StatusCode::kFailedPrecondition);
  control_->LetGo();
  EXPECT_EQ(first->Await(0)->position, 1);

  auto sink = std::make_shared<RecordingSink>();
  Request request = Of(sink, {1, 2, 3, 4});
  const std::vector<SessionChunk> chunks = {
      {.id = "a"}, {.id = "a"}, {.id = "b", .start = true}, {.id = "a", .start = true}};
  for (size_t i = 0; i < chunks.size(); ++i) {
    request.items[i]->chunk = std::make_shared<const SessionChunk>(chunks[i]);
  }
  request.items[0]->fault = absl::InvalidArgumentError("broken on the wire");
  ASSERT_TRUE(engine_->Submit(request).ok());
  EXPECT_THAT(sink->Await(0), IsInvalid("broken on the wire"));
  EXPECT_THAT(sink->Await(1),
              IsStatus(absl::StatusCode::kFailedPrecondition, "before this one was refused"));
  EXPECT_EQ(sink->Await(2)->position, 3);
  EXPECT_EQ(sink->Await(3)->position, 4);
}

TEST_F(SessionLine, BeginsAnewWithAStartBehindAChunkThatFails) {
  FailRows(2);
  Start();
  const Sink first = Occupy();
  const Sink failing = Send({.id = "a"}, 2);
  const Sink behind = Send({.id = "a"}, 1);
  const Sink start = Send({.id = "a", .start = true}, 3);
  const Sink after = Send({.id = "a"}, 1);
  control_->LetGo();
  EXPECT_TRUE(absl::IsInternal(failing->Await(0).status()));
  EXPECT_THAT(behind->Await(0).status(), ResumesAt(1, "was not computed"));
  EXPECT_EQ(start->Await(0)->position, 3);
  EXPECT_EQ(after->Await(0)->position, 4);
}

TEST_F(SessionLine, BehindAStartThatFailsIsNotTakenForTheOldSession) {
  FailRows(2);
  Start();
  const Sink first = Occupy();
  const Sink failing = Send({.id = "a", .start = true}, 2);
  const Sink behind = Send({.id = "a"}, 1);
  control_->LetGo();
  EXPECT_TRUE(absl::IsInternal(failing->Await(0).status()));
  EXPECT_THAT(behind->Await(0).status(), ResumesAt(0, "was not computed"));
  EXPECT_EQ(Read({.id = "a"}, 1), 2);
}

// Says how a start on a live session fails.
struct FailingStart {
  const char* name;
  SessionChunk chunk;
  int64_t rows = 1;
  bool fails = false;
  bool leaves = false;
};

class SessionRestart : public SessionLine, public testing::WithParamInterface<FailingStart> {};

TEST_P(SessionRestart, ThatFailsLeavesTheSessionAsItWas) {
  const FailingStart& failing = GetParam();
  FailRows(failing.fails ? failing.rows : -1);
  control_->steps = 2;
  Start();
  Read({.id = "a", .start = true}, 3);
  if (failing.leaves) control_->Hold();
  const Sink start = Send(failing.chunk, failing.rows);
  if (failing.leaves) {
    control_->AwaitHeld(1);
    start->Abandon();
    control_->LetGo();
  }
  EXPECT_FALSE(start->Await(0).ok());
  fails_ = false;
  EXPECT_TRUE(WaitUntil([&] { return Metric("sessions") == 1; }));
  const auto next = Send({.id = "a", .position = 3}, 2)->Await(0);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(Rows(next), RowsAfter(3, 2));
  EXPECT_EQ(Closed("restarted"), 0);
  EXPECT_EQ(Metric("sessions"), Opened("start") + Opened("restore") - Closed("failed"));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, SessionRestart,
    testing::Values(FailingStart{"TooLong", {.id = "a", .start = true}, 65},
                    FailingStart{"SavedSession", {.id = "a", .start = true, .state = "x"}},
                    FailingStart{"Throws", {.id = "a", .start = true, .state = "fake x"}},
                    FailingStart{"TooLongAfterTheSaved",
                                 {.id = "a", .start = true, .state = "fake 64"}},
                    FailingStart{"Position", {.id = "a", .start = true, .position = 7}},
                    FailingStart{"Computation", {.id = "a", .start = true}, 2, true},
                    FailingStart{"Caller", {.id = "a", .start = true}, 2, false, true}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_F(EngineSession, ThatFindsNoRoomToStartAgainStaysAsItWas) {
  options_.sessions.max_bytes = 5 * kFakeSessionBytes / 2;
  Start();
  Read({.id = "a", .start = true}, 3);
  control_->Hold();
  const Sink other = Send({.id = "b", .start = true}, 1);
  control_->AwaitHeld(1);
  EXPECT_THAT(Refused({.id = "a", .start = true}, 1),
              IsStatus(absl::StatusCode::kResourceExhausted, "max_session_bytes"));
  control_->LetGo();
  other->AwaitDeliveries(1);
  EXPECT_EQ(Read({.id = "a", .position = 3}, 1), 4);
  EXPECT_EQ(Read({.id = "a", .start = true}, 2), 2);  // the other one gives way now
}

TEST_F(EngineSession, IsReplacedAtOnceWhereThereIsNeverRoomForTwo) {
  options_.sessions.max_bytes = 3 * kFakeSessionBytes / 2;
  Start();
  Read({.id = "a", .start = true}, 3);
  EXPECT_EQ(Read({.id = "a", .start = true}, 1), 1);
  EXPECT_EQ(Closed("restarted"), 1);
}

TEST_F(SessionLine, IsAnsweredWhenTheEngineGivesUp) {
  Start();
  const Sink first = Occupy();
  const Sink waiting = SendTogether({{.id = "a"}, {.id = "a"}}, 1);
  EXPECT_EQ(engine_->Drain(SteadyClock().Now()), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(waiting->Of(i), ElementsAre(IsStatus(absl::StatusCode::kUnavailable, "draining")));
  }
  control_->LetGo();
}

TEST_F(SessionLine, IsAnsweredAtItsDeadlineAndFailsThoseBehind) {
  Start(clock_);
  const Sink first = Occupy();
  const auto hasty = std::make_shared<RecordingSink>();
  Request request = Of(hasty, {1}, clock_.Now() + std::chrono::milliseconds(5));
  request.items[0]->chunk = std::make_shared<const SessionChunk>(SessionChunk{.id = "a"});
  ASSERT_TRUE(engine_->Submit(request).ok());
  const Sink behind = Send({.id = "a"}, 1);
  clock_.Advance(std::chrono::milliseconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(hasty->Await(0).status()));
  EXPECT_EQ(first->delivered(), 0u);
  control_->LetGo();
  EXPECT_THAT(behind->Await(0).status(), ResumesAt(1, "was not computed"));
  EXPECT_EQ(Read({.id = "a", .position = 1}, 1), 2);
}

TEST_F(EngineSession, ThatEndsWithItsModelVersionIsCountedSo) {
  Start();
  Read({.id = "a", .start = true}, 1);
  Read({.id = "b", .start = true}, 1);
  Read({.id = "b", .end = true}, 1);
  engine_.reset();
  EXPECT_EQ(Closed("unloaded"), 1);
  EXPECT_EQ(Closed("ended"), 1);
  EXPECT_EQ(Metric("sessions"), 0);
}

}  // namespace
}  // namespace linserve
