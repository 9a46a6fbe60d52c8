#include <atomic>
#include <latch>
#include <random>
#include <thread>

#include "batching/request_queue_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::SizeIs;

using RequestQueueDelay = RequestQueueTest;
using RequestQueueThreads = RequestQueueTest;

TEST_F(RequestQueueDelay, GivesASequenceMaxDelayToFindCompany) {
  RequestQueue queue({}, {.max_delay = 10ms}, clock_, model_);
  const TimePoint due = clock_.Now() + 10ms;
  std::optional<ClosedBatch> batch;
  std::jthread worker([&] { batch = queue.Pop(); });
  PushAll(queue, One(sink_, 0));
  clock_.AwaitWaiters(due);
  clock_.Advance(9ms);
  PushAll(queue, One(sink_, 1));
  clock_.AwaitWaiters(due);
  clock_.Advance(1ms);
  worker.join();
  EXPECT_THAT(Names(batch), ElementsAre("0", "1"));
  EXPECT_EQ(batch->reason, CloseReason::kDelay);
  EXPECT_EQ(batch->closed, due);
}

TEST_F(RequestQueueDelay, EndsAtOnceWhenTheBatchIsFull) {
  RequestQueue queue({}, {.max_tokens = 20, .max_delay = 1h}, clock_, model_);
  std::optional<ClosedBatch> batch;
  std::jthread worker([&] { batch = queue.Pop(); });
  PushAll(queue, One(sink_, 0));
  clock_.AwaitWaiters(clock_.Now() + 1h);
  PushAll(queue, One(sink_, 1));
  worker.join();
  EXPECT_THAT(Names(batch), ElementsAre("0", "1"));
  EXPECT_EQ(batch->reason, CloseReason::kFull);
}

TEST_F(RequestQueueDelay, EndsAtOnceWhenTheQueueIsClosed) {
  RequestQueue queue({}, {.max_delay = 1h}, clock_, model_);
  std::optional<ClosedBatch> batch;
  std::jthread worker([&] { batch = queue.Pop(); });
  PushAll(queue, One(sink_, 0));
  clock_.AwaitWaiters(clock_.Now() + 1h);
  queue.Close();
  worker.join();
  EXPECT_THAT(Names(batch), ElementsAre("0"));
  EXPECT_EQ(batch->reason, CloseReason::kDrain);
}

TEST_F(RequestQueueDelay, EndsAtOnceWhenTheQueueIsFlushed) {
  RequestQueue queue({}, {.max_delay = 1h}, clock_, model_);
  std::jthread worker([&] { EXPECT_FALSE(queue.Pop().has_value()); });
  PushAll(queue, One(sink_, 0));
  clock_.AwaitWaiters(clock_.Now() + 1h);
  EXPECT_EQ(queue.Flush(absl::UnavailableError("")), 1u);
  queue.Close();
}

TEST_F(RequestQueueThreads, ShareTheWorkOfOneRequest) {
  RequestQueue queue({}, {.max_sequences = 2, .max_delay = 1h}, clock_, model_);
  constexpr int kWorkers = 4;
  PushAll(queue, One(sink_, 0));
  // Each worker holds on to its batch until all have one.
  std::latch all_busy(kWorkers);
  std::vector<std::jthread> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&] {
      const std::optional<ClosedBatch> batch = queue.Pop();
      EXPECT_THAT(Names(batch), SizeIs(2));
      all_busy.arrive_and_wait();
    });
  }
  clock_.AwaitWaiters(clock_.Now() + 1h, kWorkers);
  Push(queue, Request(2 * kWorkers - 1));
}

TEST_F(RequestQueueThreads, LeaveASequenceBeyondTheBudgetToWhoeverComputesOne) {
  RequestQueue queue({}, {.max_tokens = 9}, clock_, model_, {.count = 2, .beyond_budget = 1});
  Push(queue, Request(2));
  std::optional<ClosedBatch> first = queue.Pop();
  EXPECT_THAT(Names(first), ElementsAre("0"));
  EXPECT_FALSE(queue.PopDue().has_value());
  std::vector<Pending> one;
  one.push_back(One(sink_, 2));
  one[0].cost = 9;
  Push(queue, std::move(one));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("2"));  // the other worker has what is within it
  std::optional<ClosedBatch> second;
  std::jthread other([&] {
    second = queue.Pop();
    second.reset();
    EXPECT_FALSE(queue.Pop().has_value());
  });
  queue.Close();  // ends nobody's wait while something is left
  first.reset();
  other.join();
  EXPECT_EQ(Gauges()[1], 0);
}

TEST_F(RequestQueueThreads, DeliverEachSequenceOfManyProducersExactlyOnce) {
  constexpr unsigned kProducers = 6;
  constexpr size_t kRequests = 150;
  // The queue is so small that producers meet the limits all the time.
  RequestQueue queue({.max_sequences = 40, .max_tokens = 300}, {.max_sequences = 7}, SteadyClock(),
                     model_);
  std::vector<std::jthread> consumers;
  std::atomic<size_t> computed = 0;
  for (int i = 0; i < 3; ++i) {
    consumers.emplace_back([&] {
      while (auto batch = queue.Pop()) {
        EXPECT_LE(batch->sequences.size(), 7u);
        computed += batch->sequences.size();
        for (Pending& pending : batch->sequences) pending.delivery.Complete(ItemResult{});
      }
    });
  }
  std::vector<std::shared_ptr<RecordingSink>> sinks(kProducers * kRequests);
  std::vector<size_t> sizes(sinks.size());
  std::vector<std::jthread> producers;
  for (unsigned p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      std::mt19937 random(p);
      for (size_t r = p * kRequests; r < (p + 1) * kRequests; ++r) {
        sinks[r] = std::make_shared<RecordingSink>();
        sizes[r] = 1 + random() % 10;
        std::vector<Pending> request;
        const bool late = random() % 8 == 0;
        const TimePoint deadline = late ? SteadyClock().Now() : TimePoint::max();
        for (size_t i = 0; i < sizes[r]; ++i) request.push_back(One(sinks[r], i, deadline));
        if (random() % 8 == 0) sinks[r]->Abandon();
        while (!queue.Push(request).ok()) std::this_thread::yield();
      }
    });
  }
  producers.clear();
  queue.Close();
  consumers.clear();

  size_t succeeded = 0;
  for (size_t r = 0; r < sinks.size(); ++r) {
    EXPECT_EQ(sinks[r]->delivered(), sizes[r]);
    for (size_t i = 0; i < sizes[r]; ++i) {
      const std::vector<RecordingSink::Result> results = sinks[r]->Of(i);
      ASSERT_THAT(results, SizeIs(1)) << "request " << r << ", sequence " << i;
      succeeded += results[0].ok() ? 1 : 0;
    }
  }
  EXPECT_EQ(succeeded, computed);
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace linserve
