#include "batching/request_queue.h"

#include <thread>

#include "batching/request_queue_fixture.h"
#include "core/status/retry_delay.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(RequestQueueTest, TakesARequestOnlyIfItAdmitsIt) {
  RequestQueue queue({.max_sequences = 3}, {}, clock_, model_);
  std::vector<Pending> request = Request(2);
  EXPECT_TRUE(queue.Push(request).ok());
  EXPECT_THAT(request, IsEmpty());

  request = Request(2);
  EXPECT_THAT(queue.Push(request), IsStatus(kExhaustedCode, "max_queue_sequences = 3"));
  EXPECT_THAT(request, SizeIs(2));
  EXPECT_THAT(Gauges(), ElementsAre(1, 2, 20, 200));
  EXPECT_EQ(sink_->delivered(), 0u);
}

TEST_F(RequestQueueTest, NamesTheLimitThatARequestMeets) {
  const std::vector<std::pair<QueueLimits, std::string>> cases = {
      {{.max_sequences = 4}, "3 waiting and 2 asked for exceed max_queue_sequences = 4"},
      {{.max_tokens = 49}, "30 waiting and 20 asked for exceed max_queue_tokens = 49"},
      {{.max_bytes = 499}, "300 waiting and 200 asked for exceed max_queue_bytes = 499"}};
  for (const auto& [limits, message] : cases) {
    RequestQueue queue(limits, {}, clock_, model_);
    Push(queue, Request(3));
    std::vector<Pending> request = Request(2);
    EXPECT_THAT(queue.Push(request), IsStatus(kExhaustedCode, message));
    queue.Flush(absl::UnavailableError("the test is over"));
  }
  EXPECT_EQ(Metric("rejected_total", R"(reason="queue",)"), 2);
  EXPECT_EQ(Metric("rejected_total", R"(reason="bytes",)"), 1);
}

TEST_F(RequestQueueTest, TellsOnlyThatToComeAgainForWhichThereCanBeRoom) {
  RequestQueue queue({.max_sequences = 4}, {}, clock_, model_);
  Push(queue, Request(3));
  std::vector<Pending> request = Request(4);
  const absl::Status full = queue.Push(request);
  EXPECT_TRUE(RetryDelayOf(full).has_value());
  EXPECT_FALSE(IsNeverFits(full));
  std::vector<Pending> too_many = Request(5);
  const absl::Status never = queue.Push(too_many);
  EXPECT_FALSE(RetryDelayOf(never).has_value());
  EXPECT_TRUE(IsNeverFits(never));
  queue.Flush(absl::UnavailableError("the test is over"));
}

TEST_F(RequestQueueTest, CountsWhatIsOfferedWhetherOrNotThereIsRoom) {
  RequestQueue queue({.max_tokens = 50}, {}, clock_, model_);
  Push(queue, Request(3));
  std::vector<Pending> too_much = Request(4);
  EXPECT_FALSE(queue.Push(too_much).ok());
  EXPECT_EQ(Metric("arrived_tokens_total"), 70);
  std::vector<Pending> held = Request(1);
  ASSERT_TRUE(queue.Hold(held[0]).ok());
  EXPECT_EQ(Metric("arrived_tokens_total"), 70);
  held[0].room.reset();
  queue.PushNext(held);
  EXPECT_EQ(Metric("arrived_tokens_total"), 80);
  queue.Close();
  std::vector<Pending> for_others = Request(1);
  EXPECT_FALSE(queue.Push(for_others).ok());
  EXPECT_EQ(Metric("arrived_tokens_total"), 80);
  queue.Flush(absl::UnavailableError("the test is over"));
}

TEST_F(RequestQueueTest, HasTheLimitsThatWereSetLast) {
  RequestQueue queue({.max_sequences = 2}, {}, clock_, model_);
  Push(queue, Request(2));
  std::vector<Pending> request = Request(1);
  EXPECT_FALSE(queue.Push(request).ok());
  queue.SetLimits({.max_sequences = 3});
  EXPECT_TRUE(queue.Push(request).ok());
  // What waits beyond lower limits goes on waiting, and nothing more is let in.
  queue.SetLimits({.max_sequences = 1});
  std::vector<Pending> late = Request(1);
  EXPECT_THAT(queue.Push(late), IsStatus(kExhaustedCode, "max_queue_sequences = 1"));
  EXPECT_EQ(Gauges()[1], 3);
}

TEST_F(RequestQueueTest, AdmitsUpToTheLimits) {
  RequestQueue queue({.max_sequences = 5, .max_tokens = 50, .max_bytes = 500}, {}, clock_, model_);
  Push(queue, Request(3));
  Push(queue, Request(2));
  EXPECT_THAT(Gauges(), ElementsAre(2, 5, 50, 500));
  EXPECT_EQ(queue.Flush(absl::UnavailableError("")), 5u);
}

TEST_F(RequestQueueTest, GivesHigherPrioritiesOutFirst) {
  RequestQueue queue({}, {}, clock_, model_);
  std::vector<Pending> request = Request(6);
  for (const size_t i : {0, 3}) request[i].priority = Priority::kLow;
  for (const size_t i : {2, 5}) request[i].priority = Priority::kHigh;
  Push(queue, std::move(request));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("2", "5", "1", "4", "0", "3"));
}

TEST_F(RequestQueueTest, LetsNobodyBeOvertakenForLongerThanTheHeadStart) {
  RequestQueue queue({}, {}, clock_, model_);
  std::vector<Pending> request = Request(3);
  request[0].priority = Priority::kLow;
  request[2].priority = Priority::kHigh;
  PushAll(queue, std::move(request[0]));
  clock_.Advance(kHeadStart + 1ns);
  PushAll(queue, std::move(request[1]), std::move(request[2]));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("2", "0", "1"));
}

TEST_F(RequestQueueTest, GivesShortSequencesOutWhoeverWaitsBeforeThem) {
  RequestQueue queue({}, {.max_tokens = 20, .max_delay = 1h}, clock_, model_);
  EXPECT_EQ(queue.PopShort(10), std::nullopt);
  std::vector<Pending> request = Request(6);
  for (const size_t i : {0, 2, 3}) request[i].cost = 100;
  Push(queue, std::move(request));
  EXPECT_EQ(queue.PopShort(9), std::nullopt);
  EXPECT_THAT(Names(queue.PopShort(10)), ElementsAre("1"));
  EXPECT_THAT(Names(queue.PopShort(99)), ElementsAre("4", "5"));
  EXPECT_EQ(queue.PopShort(10), std::nullopt);
  EXPECT_EQ(Metric("queue_tokens"), 30);
  EXPECT_EQ(queue.Flush(absl::UnavailableError("")), 3u);
}

TEST_F(RequestQueueTest, GivesSequencesOutInTheOrderInWhichTheyCame) {
  RequestQueue queue({}, {.max_sequences = 2}, clock_, model_);
  Push(queue, Request(3));
  Push(queue, Request(2));
  std::optional<ClosedBatch> batch = queue.Pop();
  EXPECT_THAT(Names(batch), ElementsAre("0", "1"));
  EXPECT_EQ(batch->reason, CloseReason::kFull);
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("2", "0"));
  batch = queue.Pop();
  EXPECT_THAT(Names(batch), ElementsAre("1"));
  EXPECT_EQ(batch->reason, CloseReason::kIdle);
}

TEST_F(RequestQueueTest, NotesWhenASequenceCameAndWhenItsBatchWasClosed) {
  const TimePoint start = clock_.Now();
  Push(queue_, Request(1));
  clock_.Advance(5ms);
  const std::optional<ClosedBatch> batch = queue_.Pop();
  EXPECT_EQ(batch->sequences[0].enqueued, start);
  EXPECT_EQ(batch->closed, start + 5ms);
}

TEST_F(RequestQueueTest, CountsARequestUntilItsLastSequenceIsTaken) {
  RequestQueue queue({}, {.max_sequences = 2}, clock_, model_);
  Push(queue, Request(3));
  Push(queue, Request(1));
  EXPECT_THAT(Gauges(), ElementsAre(2, 4, 40, 400));
  std::optional<ClosedBatch> first = queue.Pop();
  EXPECT_THAT(Gauges(), ElementsAre(2, 2, 20, 200));
  std::optional<ClosedBatch> second = queue.Pop();
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(Metric("queue_tokens"), 0);
}

TEST_F(RequestQueueTest, AnswersTheDepartedAndKeepsThemOutOfBatches) {
  const auto left = std::make_shared<RecordingSink>();
  left->Abandon();
  PushAll(queue_, One(sink_, 0, clock_.Now() + 1ms), One(left, 0), One(sink_, 1));
  clock_.Advance(1ms);
  std::optional<ClosedBatch> batch = queue_.Pop();
  EXPECT_THAT(Names(batch), ElementsAre("1"));
  EXPECT_THAT(sink_->Of(0),
              ElementsAre(IsStatus(absl::StatusCode::kDeadlineExceeded, "while the sequence was")));
  EXPECT_THAT(left->Of(0), ElementsAre(IsStatus(absl::StatusCode::kCancelled, "caller left")));
  EXPECT_THAT(sink_->Of(1), IsEmpty());
  EXPECT_EQ(Metric("abandoned_total", R"(stage="queue",)"), 2);
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
}

TEST_F(RequestQueueTest, AnswersTheDepartedWhenThereIsNothingElseToDo) {
  sink_->Abandon();
  Push(queue_, Request(3));
  std::jthread worker([&] { EXPECT_FALSE(queue_.Pop().has_value()); });
  sink_->AwaitDeliveries(3);
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
  queue_.Close();
}

TEST_F(RequestQueueTest, DropsTheDepartedWhenRoomIsNeeded) {
  RequestQueue queue({.max_sequences = 3}, {}, clock_, model_);
  const auto left = std::make_shared<RecordingSink>();
  PushAll(queue, One(left, 0), One(sink_, 9), One(left, 1));
  left->Abandon();
  std::vector<Pending> request = Request(3);
  EXPECT_THAT(queue.Push(request), IsStatus(kExhaustedCode, "1 waiting and 3 asked for"));
  EXPECT_THAT(left->Of(0), SizeIs(1));
  EXPECT_THAT(left->Of(1), SizeIs(1));
  request.pop_back();
  EXPECT_TRUE(queue.Push(request).ok());
  EXPECT_THAT(Gauges(), ElementsAre(2, 3, 30, 300));
  EXPECT_EQ(queue.Flush(absl::UnavailableError("")), 3u);
}

TEST_F(RequestQueueTest, LetsNobodyInOnceItIsClosedButGivesOutWhatWaits) {
  RequestQueue queue({}, {.max_delay = 1h}, clock_, model_);
  Push(queue, Request(2));
  queue.Close();
  std::vector<Pending> late = Request(1);
  EXPECT_THAT(queue.Push(late), IsStatus(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_THAT(late, SizeIs(1));
  EXPECT_EQ(Metric("rejected_total", R"(reason="draining",)"), 1);

  std::optional<ClosedBatch> batch = queue.Pop();
  ASSERT_TRUE(batch.has_value());
  EXPECT_THAT(batch->sequences, SizeIs(2));
  EXPECT_EQ(batch->reason, CloseReason::kDrain);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST_F(RequestQueueTest, WakesAllWorkersWhenItIsClosed) {
  std::vector<std::jthread> workers;
  for (int i = 0; i < 3; ++i) workers.emplace_back([&] { EXPECT_FALSE(queue_.Pop().has_value()); });
  queue_.Close();
}

TEST_F(RequestQueueTest, AnswersAllThatWaitsWhenItIsFlushed) {
  Push(queue_, Request(3));
  EXPECT_EQ(queue_.Flush(absl::UnavailableError("going away")), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(sink_->Of(i), ElementsAre(IsStatus(absl::StatusCode::kUnavailable, "going away")));
  }
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(queue_.Flush(absl::UnavailableError("")), 0u);
}

TEST_F(RequestQueueTest, AdmitsARequestWithoutSequences) {
  std::vector<Pending> none;
  EXPECT_TRUE(queue_.Push(none).ok());
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace linserve
