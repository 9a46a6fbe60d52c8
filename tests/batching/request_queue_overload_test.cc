#include <gtest/gtest.h>

#include "batching/request_queue_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::SizeIs;

class RequestQueueOverload : public RequestQueueTest {
 protected:
  // Pushes one more sequence of this caller, named by its number, and returns what the queue says
  // to it.
  absl::Status PushOf(RequestQueue& queue, const std::string& caller, size_t number,
                      Priority priority = Priority::kNormal,
                      TimePoint deadline = TimePoint::max()) const {
    std::vector<Pending> request;
    request.push_back(One(sink_, number, deadline, caller));
    request[0].priority = priority;
    return queue.Push(request);
  }
};

TEST_F(RequestQueueOverload, ALongSequenceIsInABatchOfItsOwn) {
  RequestQueue queue({}, {.long_rows = 9}, clock_, model_,
                     kMillisecondAToken);  // 10 rows take 10 ms
  Push(queue, Request(2));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("1"));
  const Workers fast{1, [](int64_t) { return kLongPass; }};
  for (const auto& [long_rows, worker] : {std::pair(10, kMillisecondAToken), std::pair(9, fast)}) {
    RequestQueue together({}, {.long_rows = long_rows}, clock_, model_, worker);
    Push(together, Request(2));
    EXPECT_THAT(Names(together.Pop()), ElementsAre("0", "1"));
  }
}

TEST_F(RequestQueueOverload, TheTurnsDoNotGoOnWithThoseWhoOvertake) {
  RequestQueue queue({}, {.max_sequences = 1}, clock_, model_, kMillisecondAToken);
  std::vector<Pending> request;
  for (size_t i = 0; i < 1000; ++i) request.push_back(One(sink_, i, TimePoint::max(), "busy"));
  for (size_t i = 0; i < 999; ++i) request[i].cost = 100;
  Push(queue, std::move(request));
  clock_.Advance(1s);
  EXPECT_THAT(Names(queue.PopShort(10)), ElementsAre("999"));  // its turn was in ten seconds
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0"));
  EXPECT_TRUE(PushOf(queue, "new", 5).ok());
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("5"));
}

TEST_F(RequestQueueOverload, CallersHaveTheirTurnsWhateverTheOthersHaveWaiting) {
  RequestQueue queue({}, {.max_sequences = 3}, clock_, model_, kMillisecondAToken);
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(PushOf(queue, "much", i).ok());
  EXPECT_TRUE(PushOf(queue, "little", 10).ok());
  EXPECT_TRUE(PushOf(queue, "little", 11).ok());
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0", "10", "1"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("11", "2", "3"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("4", "5"));
}

TEST_F(RequestQueueOverload, TurnsAreByWorkNotByNumber) {
  RequestQueue queue({}, {.max_sequences = 4}, clock_, model_, kMillisecondAToken);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<Pending> request;
    request.push_back(One(sink_, i, TimePoint::max(), "long"));
    request[0].tokens = 30;
    Push(queue, std::move(request));
  }
  for (size_t i = 10; i < 14; ++i) EXPECT_TRUE(PushOf(queue, "short", i).ok());
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0", "10", "11", "12"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("1", "13"));
}

TEST_F(RequestQueueOverload, AFullQueueMakesRoomForHigherPriorities) {
  RequestQueue queue({.max_sequences = 3}, {}, clock_, model_, kMillisecondAToken);
  EXPECT_TRUE(PushOf(queue, "a", 0).ok());
  EXPECT_TRUE(PushOf(queue, "a", 1, Priority::kLow).ok());
  EXPECT_TRUE(PushOf(queue, "a", 2, Priority::kLow).ok());
  EXPECT_TRUE(PushOf(queue, "b", 3, Priority::kHigh).ok());
  EXPECT_THAT(sink_->Of(2), ElementsAre(IsStatus(kExhaustedCode, "higher priority")));
  EXPECT_THAT(PushOf(queue, "b", 4, Priority::kLow),
              IsStatus(kExhaustedCode, "max_queue_sequences"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("3", "0", "1"));
  EXPECT_EQ(Metric("displaced_total"), 1);
}

TEST_F(RequestQueueOverload, AFullQueueMakesRoomForCallersWithLessInIt) {
  RequestQueue queue({.max_tokens = 40}, {}, clock_, model_, kMillisecondAToken);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(PushOf(queue, "much", i).ok());
  EXPECT_THAT(PushOf(queue, "much", 4), IsStatus(kExhaustedCode, "max_queue_tokens = 40"));
  EXPECT_TRUE(PushOf(queue, "little", 10).ok());
  EXPECT_TRUE(PushOf(queue, "little", 11).ok());
  // Each caller has half of the queue by now.
  EXPECT_THAT(PushOf(queue, "little", 12), IsStatus(kExhaustedCode, "max_queue_tokens = 40"));
  EXPECT_THAT(PushOf(queue, "much", 5), IsStatus(kExhaustedCode, "max_queue_tokens = 40"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0", "10", "1", "11"));
  EXPECT_THAT(sink_->Of(2), SizeIs(1));
  EXPECT_THAT(sink_->Of(3), SizeIs(1));
}

TEST_F(RequestQueueOverload, WhatGoesOnIsNotDisplaced) {
  RequestQueue queue({.max_sequences = 2}, {}, clock_, model_, kMillisecondAToken);
  EXPECT_TRUE(PushOf(queue, "a", 0, Priority::kLow).ok());
  std::vector<Pending> next;
  next.push_back(One(sink_, 1, TimePoint::max(), "a"));
  next[0].priority = Priority::kLow;
  queue.PushNext(next);
  EXPECT_TRUE(PushOf(queue, "b", 2, Priority::kHigh).ok());
  EXPECT_THAT(sink_->Of(0), ElementsAre(IsStatus(kExhaustedCode, "higher priority")));
  EXPECT_THAT(PushOf(queue, "b", 3, Priority::kHigh),
              IsStatus(kExhaustedCode, "max_queue_sequences"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("2", "1"));
}

TEST_F(RequestQueueOverload, NobodyIsDisplacedForARequestThatStillDoesNotFit) {
  RequestQueue queue({.max_sequences = 3}, {}, clock_, model_, kMillisecondAToken);
  EXPECT_TRUE(PushOf(queue, "a", 0, Priority::kHigh).ok());
  EXPECT_TRUE(PushOf(queue, "a", 1, Priority::kLow).ok());
  std::vector<Pending> request = Request(3);
  EXPECT_THAT(queue.Push(request), IsStatus(kExhaustedCode, "max_queue_sequences"));
  EXPECT_THAT(request, SizeIs(3));
  EXPECT_EQ(sink_->delivered(), 0u);
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0", "1"));
}

TEST_F(RequestQueueOverload, ADeadlineTooNearForWhatWaitsIsRefusedAtOnce) {
  RequestQueue queue({}, {}, clock_, model_, kMillisecondAToken);
  Push(queue, Request(10));
  EXPECT_THAT(PushOf(queue, "", 20, Priority::kNormal, clock_.Now() + 90ms),
              IsStatus(kExhaustedCode, "the deadline is in 90.0 ms, but 100.0 ms or more of work"));
  EXPECT_EQ(Metric("rejected_total", R"(reason="deadline",)"), 1);
  EXPECT_TRUE(PushOf(queue, "", 21, Priority::kNormal, clock_.Now() + 101ms).ok());
  // Sequences of other callers and priorities are in time, because it is their turn now.
  EXPECT_TRUE(PushOf(queue, "b", 22, Priority::kNormal, clock_.Now() + 20ms).ok());
  EXPECT_TRUE(PushOf(queue, "", 23, Priority::kHigh, clock_.Now() + 20ms).ok());
}

TEST_F(RequestQueueOverload, ADeadlineCountsWhatIsDueBeforeItWhateverWaitsAfterIt) {
  RequestQueue queue({}, {}, clock_, model_, kMillisecondAToken);
  Pending held = One(sink_, 99);
  EXPECT_TRUE(queue.Hold(held).ok());
  for (size_t i = 0; i < 10; ++i) EXPECT_TRUE(PushOf(queue, "a", i).ok());
  for (size_t i = 10; i < 13; ++i) EXPECT_TRUE(PushOf(queue, "b", i).ok());
  EXPECT_THAT(PushOf(queue, "b", 13, Priority::kNormal, clock_.Now() + 69ms),
              IsStatus(kExhaustedCode, "but 70.0 ms or more of work"));
  EXPECT_TRUE(PushOf(queue, "b", 14, Priority::kNormal, clock_.Now() + 70ms).ok());
  held.room.reset();
  held.delivery.Release();
  EXPECT_EQ(queue.Flush(absl::UnavailableError("")), 14u);
}

TEST_F(RequestQueueOverload, ADeadlineIsRefusedWithoutALookAtAllThatWaits) {
  int looks = 0;
  RequestQueue queue({}, {}, clock_, model_, {.count = 1, .time_for = [&](int64_t tokens) {
                                                ++looks;
                                                return tokens * std::chrono::milliseconds(1);
                                              }});
  Push(queue, Request(1000));
  looks = 0;
  EXPECT_THAT(PushOf(queue, "", 1000, Priority::kNormal, clock_.Now() + 9999ms),
              IsStatus(kExhaustedCode, "but 10000.0 ms or more of work"));
  EXPECT_LT(looks, 50);
}

TEST_F(RequestQueueOverload, WhatCannotBeComputedInTimeIsNotBegun) {
  RequestQueue queue({}, {.max_tokens = 40}, clock_, model_, kMillisecondAToken);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(PushOf(queue, "", i, Priority::kNormal, clock_.Now() + 200ms).ok());
  }
  clock_.Advance(149ms);
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0", "1", "2", "3"));
  for (size_t i = 6; i < 10; ++i) EXPECT_TRUE(PushOf(queue, "", i).ok());
  clock_.Advance(2ms);
  // In a batch of up to 50 ms these two would be late; the others have time.
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("6", "7", "8", "9"));
  for (const size_t late : {4, 5}) {
    EXPECT_THAT(sink_->Of(late), ElementsAre(IsStatus(kExhaustedCode, "would pass before")));
  }
  EXPECT_EQ(Metric("rejected_total", R"(reason="deadline",)"), 2);
  EXPECT_EQ(Metric("abandoned_total", R"(stage="queue",)"), 0);  // their callers wait still
}

TEST_F(RequestQueueOverload, WhatGoesOnAndCannotBeComputedInTimeMissesItsDeadline) {
  RequestQueue queue({}, {}, clock_, model_, kMillisecondAToken);
  EXPECT_TRUE(PushOf(queue, "", 0).ok());
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0"));
  std::vector<Pending> next;
  next.push_back(One(sink_, 1, clock_.Now() + 5ms));
  queue.PushNext(next);
  EXPECT_FALSE(queue.PopDue().has_value());
  // It is not told to try another server, which knows nothing of what it goes on after.
  EXPECT_THAT(sink_->Of(1),
              ElementsAre(IsStatus(absl::StatusCode::kDeadlineExceeded, "would pass before")));
}

// Makes one token of a generation, the first of which notes its turn in `taken`.
Pending TokenOf(Pending pending, const std::shared_ptr<TurnTaken>& taken) {
  pending.tokens = 1;
  pending.taken = taken;
  return pending;
}

TEST_F(RequestQueueOverload, WhatGoesOnDoesNotWaitForAllThatItsCallerSentMeanwhile) {
  RequestQueue queue({}, {.max_sequences = 1}, clock_, model_, kMillisecondAToken);
  const auto taken = std::make_shared<TurnTaken>();
  PushAll(queue, TokenOf(One(sink_, 0, TimePoint::max(), "a"), taken));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0"));
  for (size_t i = 1; i < 5; ++i) EXPECT_TRUE(PushOf(queue, "a", i).ok());
  clock_.Advance(15ms);
  std::vector<Pending> next;
  next.push_back(TokenOf(One(sink_, 9, TimePoint::max(), "a"), taken));
  queue.PushNext(next);
  for (const char* name : {"1", "2", "9", "3", "4"}) {
    EXPECT_THAT(Names(queue.Pop()), ElementsAre(name));
  }
}

TEST_F(RequestQueueOverload, WhatGoesOnAndOnLeavesOthersTheirTurnsHoweverFewTokensItHas) {
  RequestQueue queue({}, {.max_sequences = 1}, clock_, model_, kMillisecondAToken);
  const auto taken = std::make_shared<TurnTaken>();
  PushAll(queue, TokenOf(One(sink_, 0, TimePoint::max(), "a"), taken));
  for (size_t i = 1; i < 5; ++i) EXPECT_TRUE(PushOf(queue, "b", i).ok());
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) {
    names.push_back(Names(queue.Pop()).at(0));
    clock_.Advance(10ms);
    if (names.back() != "0") continue;
    std::vector<Pending> next;
    next.push_back(TokenOf(One(sink_, 0, TimePoint::max(), "a"), taken));
    queue.PushNext(next);
  }
  EXPECT_THAT(names, ElementsAre("0", "1", "2", "0", "3", "0", "4", "0"));
  EXPECT_EQ(queue.Flush(absl::UnavailableError("")), 1u);
}

TEST_F(RequestQueueOverload, WhereNoBatchWasBegunForAWhileEvenTheHopelessIsComputed) {
  RequestQueue queue({}, {.max_tokens = 40}, clock_, model_, kMillisecondAToken);
  clock_.Advance(2s);
  EXPECT_TRUE(PushOf(queue, "", 0, Priority::kNormal, clock_.Now() + 1ms).ok());
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0"));
  EXPECT_TRUE(PushOf(queue, "", 1, Priority::kNormal, clock_.Now() + 1ms).ok());
  EXPECT_FALSE(queue.PopDue().has_value());
  EXPECT_THAT(sink_->Of(1), ElementsAre(IsStatus(kExhaustedCode, "would pass before")));
  EXPECT_TRUE(PushOf(queue, "", 2, Priority::kNormal, clock_.Now() + 11ms).ok());
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("2"));
  clock_.Advance(2s);
  EXPECT_TRUE(PushOf(queue, "", 3, Priority::kNormal, clock_.Now() + 1ms).ok());
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("3"));
}

TEST_F(RequestQueueOverload, WorkThatIsDroppedTakesNoTurn) {
  RequestQueue queue({}, {.max_tokens = 20}, clock_, model_, kMillisecondAToken);
  const auto left = std::make_shared<RecordingSink>();
  for (size_t i = 0; i < 9; ++i) {
    std::vector<Pending> request;
    request.push_back(One(left, i, TimePoint::max(), "a"));
    EXPECT_TRUE(queue.Push(request).ok());
  }
  for (size_t i = 20; i < 24; ++i) EXPECT_TRUE(PushOf(queue, "b", i).ok());
  left->Abandon();
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("20", "21"));
  EXPECT_TRUE(PushOf(queue, "a", 9).ok());
  EXPECT_THAT(Names(queue.PopDue()), ElementsAre("9", "22"));
}

TEST_F(RequestQueueOverload, OfAnUnknownSpeedTheTurnsAreAsTheyCame) {
  RequestQueue queue({}, {}, clock_, model_);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(PushOf(queue, "a", i).ok());
  EXPECT_TRUE(PushOf(queue, "b", 3, Priority::kNormal, clock_.Now() + 1ns).ok());
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0", "1", "2", "3"));
}

}  // namespace
}  // namespace linserve
