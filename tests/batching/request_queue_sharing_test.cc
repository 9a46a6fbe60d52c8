#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "batching/request_queue_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Pushes sequences of equal identity.
class RequestQueueSharing : public RequestQueueTest {
 protected:
  static Pending Alike(const std::string& identity, std::shared_ptr<ResultSink> sink, size_t index,
                       TimePoint deadline = TimePoint::max(), const std::string& caller = "") {
    Pending pending = One(std::move(sink), index, deadline, caller);
    pending.identity = std::make_shared<const Identity>(identity);
    return pending;
  }
  static Pending Of(Priority priority, Pending pending) {
    pending.priority = priority;
    return pending;
  }

  // Returns the names of the first sequence of a batch and of those who share it.
  static std::vector<std::string> Together(const std::optional<ClosedBatch>& batch) {
    std::vector<std::string> names = {batch->sequences.at(0).origin->request_id};
    for (const Pending& sharer : batch->sequences[0].sharers) {
      names.push_back(sharer.origin->request_id);
    }
    return names;
  }
};

TEST_F(RequestQueueSharing, ShareOnePlace) {
  PushAll(queue_, Alike("a", sink_, 0));
  PushAll(queue_, Alike("b", sink_, 1));
  PushAll(queue_, Alike("a", sink_, 2));
  PushAll(queue_, Alike("a", sink_, 3));
  EXPECT_THAT(Gauges(), ElementsAre(4, 2, 20, 200));
  const auto batch = queue_.Pop();
  EXPECT_THAT(Names(batch), ElementsAre("0", "1"));
  EXPECT_THAT(Together(batch), ElementsAre("0", "2", "3"));
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
}

TEST_F(RequestQueueSharing, OfOneRequestDo) {
  PushAll(queue_, Alike("a", sink_, 0), Alike("b", sink_, 1), Alike("a", sink_, 2));
  EXPECT_THAT(Gauges(), ElementsAre(1, 2, 20, 200));
  EXPECT_THAT(Together(queue_.Pop()), ElementsAre("0", "2"));
  EXPECT_EQ(Metric("cache_lookups_total", R"(outcome="miss",)"), 2);
  EXPECT_EQ(Metric("cache_lookups_total", R"(outcome="joined",)"), 1);
}

TEST_F(RequestQueueSharing, FindRoomInAFullQueue) {
  RequestQueue queue({.max_sequences = 1}, {}, clock_, model_);
  PushAll(queue, Alike("a", sink_, 0));
  PushAll(queue, Alike("a", sink_, 1));
  std::vector<Pending> other;
  other.push_back(Alike("b", sink_, 2));
  EXPECT_THAT(queue.Push(other), IsStatus(kExhaustedCode, "max_queue_sequences"));
  EXPECT_EQ(queue.Flush(absl::UnavailableError("over")), 2u);
  EXPECT_THAT(sink_->Of(1), ElementsAre(IsStatus(absl::StatusCode::kUnavailable, "over")));
}

TEST_F(RequestQueueSharing, AreNotDisplacedByOneThatIsToShareThem) {
  RequestQueue queue({.max_sequences = 2}, {}, clock_, model_, kMillisecondAToken);
  PushAll(queue, Of(Priority::kLow, Alike("b", sink_, 0)));
  PushAll(queue, Of(Priority::kLow, Alike("a", sink_, 1)));
  PushAll(queue, Of(Priority::kHigh, Alike("a", sink_, 2)), Of(Priority::kHigh, One(sink_, 3)));
  EXPECT_THAT(sink_->Of(0), ElementsAre(IsStatus(kExhaustedCode, "higher priority")));
  EXPECT_THAT(sink_->Of(1), IsEmpty());
  EXPECT_THAT(Gauges(), ElementsAre(2, 2, 20, 200));
}

TEST_F(RequestQueueSharing, CountOnceTheyAreGoneForOneThatWasToShareThem) {
  RequestQueue queue({.max_sequences = 2}, {}, clock_, model_, kMillisecondAToken);
  const auto gone = std::make_shared<RecordingSink>();
  PushAll(queue, Alike("a", gone, 0), One(sink_, 1));
  gone->Abandon();
  std::vector<Pending> request;
  for (size_t i = 2; i < 4; ++i) request.push_back(One(sink_, i));
  request.push_back(Alike("a", sink_, 4));
  EXPECT_THAT(queue.Push(request), IsStatus(kExhaustedCode, "max_queue_sequences"));
  EXPECT_THAT(Gauges(), ElementsAre(1, 1, 10, 100));
}

TEST_F(RequestQueueSharing, AreDueWithTheFirstOfThem) {
  RequestQueue queue({}, {.max_sequences = 1}, clock_, model_, kMillisecondAToken);
  PushAll(queue, Of(Priority::kLow, Alike("a", sink_, 0)));
  PushAll(queue, One(sink_, 1));
  PushAll(queue, Of(Priority::kHigh, Alike("a", sink_, 2)));
  PushAll(queue, Of(Priority::kLow, Alike("a", sink_, 3)));
  EXPECT_THAT(Together(queue.Pop()), ElementsAre("2", "0", "3"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("1"));
}

TEST_F(RequestQueueSharing, AreDueWithTheFirstOfThoseWhoStillWait) {
  RequestQueue queue({}, {.max_sequences = 1}, clock_, model_, kMillisecondAToken);
  const auto left = std::make_shared<RecordingSink>();
  PushAll(queue, Of(Priority::kHigh, Alike("a", left, 0)));
  PushAll(queue, One(sink_, 1));
  PushAll(queue, Of(Priority::kLow, Alike("a", sink_, 2)));
  left->Abandon();
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("1"));
  EXPECT_THAT(left->Of(0), SizeIs(1));
  EXPECT_EQ(Metric("queue_tokens"), 10);
  EXPECT_THAT(Together(queue.Pop()), ElementsAre("2"));
}

TEST_F(RequestQueueSharing, TakeTheTurnOfTheCallerWhoIsDueFirst) {
  RequestQueue queue({}, {.max_sequences = 1}, clock_, model_, kMillisecondAToken);
  for (size_t i = 0; i < 3; ++i) {
    PushAll(queue, One(sink_, i, TimePoint::max(), "much"));
  }
  PushAll(queue, Alike("a", sink_, 3, TimePoint::max(), "much"));
  PushAll(queue, Alike("a", sink_, 10, TimePoint::max(), "little"));
  PushAll(queue, One(sink_, 11, TimePoint::max(), "little"));
  PushAll(queue, One(sink_, 4, TimePoint::max(), "much"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("0"));
  EXPECT_THAT(Together(queue.Pop()), ElementsAre("10", "3"));
  // The time is the one caller's now, and not the other's.
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("1"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("11"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("2"));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("4"));
}

TEST_F(RequestQueueSharing, AreDroppedOneByOneAtTheirDeadlines) {
  PushAll(queue_, Alike("a", sink_, 0, clock_.Now() + 1ms));
  PushAll(queue_, Alike("a", sink_, 1, clock_.Now() + 9ms));
  PushAll(queue_, Alike("a", sink_, 2, clock_.Now() + 1ms));
  clock_.Advance(1ms);
  const auto batch = queue_.Pop();
  EXPECT_THAT(Together(batch), ElementsAre("1"));
  for (const size_t late : {0, 2}) {
    EXPECT_THAT(sink_->Of(late),
                ElementsAre(IsStatus(absl::StatusCode::kDeadlineExceeded, "queued")));
  }
  EXPECT_EQ(Metric("abandoned_total", R"(stage="queue",)"), 2);
  EXPECT_THAT(sink_->Of(1), IsEmpty());
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
}

TEST_F(RequestQueueSharing, AreDisplacedTogether) {
  RequestQueue queue({.max_sequences = 1}, {}, clock_, model_, kMillisecondAToken);
  PushAll(queue, Of(Priority::kLow, Alike("a", sink_, 0)));
  PushAll(queue, Of(Priority::kLow, Alike("a", sink_, 1)));
  PushAll(queue, Of(Priority::kHigh, One(sink_, 2)));
  for (const size_t i : {0, 1}) {
    EXPECT_THAT(sink_->Of(i), ElementsAre(IsStatus(kExhaustedCode, "higher priority")));
  }
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("2"));
}

TEST_F(RequestQueueTest, DropsTheDepartedWhenItIsToldTo) {
  const auto left = std::make_shared<RecordingSink>();
  PushAll(queue_, One(left, 0), One(sink_, 1));
  left->Abandon();
  EXPECT_EQ(queue_.DropDeparted(), TimePoint::max());
  EXPECT_THAT(left->Of(0), SizeIs(1));
  EXPECT_THAT(Gauges(), ElementsAre(1, 1, 10, 100));
  EXPECT_EQ(queue_.DropDeparted(), clock_.Now() + 100ms);
  EXPECT_EQ(queue_.Flush(absl::UnavailableError("")), 1u);
}

TEST_F(RequestQueueTest, CountsWhatIsHeldUntilItsRoomIsGivenBack) {
  RequestQueue queue({.max_sequences = 2}, {}, clock_, model_);
  Pending held = One(sink_, 0);
  EXPECT_TRUE(queue.Hold(held).ok());
  PushAll(queue, One(sink_, 1));
  EXPECT_THAT(Gauges(), ElementsAre(2, 2, 20, 200));
  Pending refused = One(sink_, 2);
  EXPECT_THAT(queue.Hold(refused), IsStatus(kExhaustedCode, "max_queue_sequences = 2"));
  EXPECT_EQ(refused.room.use_count(), 0);
  held.room.reset();
  EXPECT_THAT(Gauges(), ElementsAre(1, 1, 10, 100));
  EXPECT_TRUE(queue.Hold(refused).ok());
  refused.room.reset();
  EXPECT_EQ(queue.Flush(absl::UnavailableError("")), 1u);
  held.delivery.Release();
  refused.delivery.Release();
}

// Whatever comes, goes and is shared, each is answered once and nothing is left counted.
TEST_F(RequestQueueSharing, OfManyThreadsAreEachAnsweredOnce) {
  constexpr unsigned kProducers = 4;
  constexpr size_t kRequests = 400;
  RequestQueue queue({.max_sequences = 30}, {.max_sequences = 5}, SteadyClock(), model_,
                     kMillisecondAToken);
  std::vector<std::jthread> consumers;
  for (int i = 0; i < 2; ++i) {
    consumers.emplace_back([&] {
      while (auto batch = queue.Pop()) {
        for (Pending& pending : batch->sequences) {
          for (Pending& sharer : pending.sharers) sharer.delivery.Complete(ItemResult{});
          pending.delivery.Complete(ItemResult{});
        }
      }
    });
  }
  std::vector<std::shared_ptr<RecordingSink>> sinks(kProducers * kRequests);
  std::vector<std::jthread> producers;
  for (unsigned p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      std::mt19937 random(p);
      for (size_t r = p * kRequests; r < (p + 1) * kRequests; ++r) {
        sinks[r] = std::make_shared<RecordingSink>();
        const TimePoint deadline = random() % 4 == 0 ? SteadyClock().Now() + 1ms : TimePoint::max();
        std::vector<Pending> request;
        request.push_back(Of(static_cast<Priority>(1 + random() % 3),
                             Alike(std::to_string(random() % 6), sinks[r], 0, deadline,
                                   std::to_string(random() % 3))));
        if (!queue.Push(request).ok()) request[0].delivery.Complete(ItemResult{});
        if (random() % 4 == 0) sinks[r]->Abandon();
        if (random() % 16 == 0) queue.DropDeparted();
      }
    });
  }
  producers.clear();
  queue.Close();
  consumers.clear();
  for (const auto& sink : sinks) EXPECT_THAT(sink->Of(0), SizeIs(1));
  EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace linserve
