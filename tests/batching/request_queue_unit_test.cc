#include <gtest/gtest.h>

#include "batching/request_queue_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Queues requests whose sequences are computed together or not at all.
class RequestQueueUnit : public RequestQueueTest {
 protected:
  // Pushes a unit whose members are named from `first` on.
  absl::Status PushUnit(RequestQueue& queue, size_t first, size_t count,
                        const std::string& caller = "", TimePoint deadline = TimePoint::max(),
                        Priority priority = Priority::kNormal) const {
    std::vector<Pending> request;
    request.push_back(One(sink_, first, deadline, caller));
    request[0].unit = true;
    request[0].priority = priority;
    for (size_t i = 1; i < count; ++i) {
      request[0].rest.push_back(One(sink_, first + i, deadline, caller));
    }
    return queue.Push(request);
  }
};

TEST_F(RequestQueueUnit, IsTakenWholeAndAloneWhateverTheBudget) {
  RequestQueue queue({}, {.max_tokens = 15, .max_sequences = 2, .max_delay = 1h}, clock_, model_);
  EXPECT_TRUE(PushUnit(queue, 0, 3).ok());
  EXPECT_TRUE(PushUnit(queue, 3, 1).ok());
  EXPECT_THAT(Gauges(), ElementsAre(2, 4, 40, 400));
  const auto batch = queue.Pop();
  EXPECT_THAT(Names(batch), ElementsAre("0", "1", "2"));
  for (const Pending& pending : batch->sequences) EXPECT_EQ(pending.enqueued, clock_.Now());
  EXPECT_THAT(Gauges(), ElementsAre(1, 1, 10, 100));
  EXPECT_THAT(Names(queue.Pop()), ElementsAre("3"));
}

TEST_F(RequestQueueUnit, IsTakenWholeFromAmongThousandsOfOtherCallers) {
  RequestQueue queue({}, {}, clock_, model_, kMillisecondAToken);
  constexpr size_t kCallers = 50;
  constexpr size_t kMembers = 60;  // more together than one decision looks at
  for (size_t i = 0; i < kCallers; ++i) {
    EXPECT_TRUE(PushUnit(queue, i * kMembers, kMembers, std::to_string(i)).ok());
  }
  for (size_t i = 0; i < kCallers; ++i) {
    const std::vector<std::string> names = Names(queue.Pop());
    ASSERT_THAT(names, SizeIs(kMembers));
    for (size_t k = 0; k < kMembers; ++k) EXPECT_EQ(names[k], std::to_string(i * kMembers + k));
  }
}

TEST_F(RequestQueueUnit, IsDroppedWholeOrNotAtAllHoweverNearItsDeadlineIs) {
  bool taken = false;
  bool dropped = false;
  for (const auto slack : {10ms, 15ms, 25ms, 35ms, 45ms, 55ms, 70ms, 90ms}) {
    RequestQueue queue({}, {.max_sequences = 2}, clock_, model_, kMillisecondAToken);
    EXPECT_TRUE(PushUnit(queue, 100, 1).ok());
    queue.Pop();  // so that the queue knows how long batches take
    sink_ = std::make_shared<RecordingSink>();
    EXPECT_TRUE(PushUnit(queue, 0, 4, "", clock_.Now() + 100ms).ok());
    clock_.Advance(100ms - slack);
    const auto batch = queue.PopDue();
    if (batch) {
      taken = true;
      EXPECT_THAT(Names(batch), ElementsAre("0", "1", "2", "3"));
      EXPECT_EQ(sink_->delivered(), 0u);
    } else {
      dropped = true;
      EXPECT_EQ(sink_->delivered(), 4u);
      EXPECT_THAT(Gauges(), ElementsAre(0, 0, 0, 0));
    }
  }
  EXPECT_TRUE(taken && dropped);
}

TEST_F(RequestQueueUnit, IsDisplacedWhole) {
  RequestQueue queue({.max_sequences = 3}, {}, clock_, model_, kMillisecondAToken);
  EXPECT_TRUE(PushUnit(queue, 5, 1, "a", TimePoint::max(), Priority::kLow).ok());
  EXPECT_TRUE(PushUnit(queue, 0, 2, "a", TimePoint::max(), Priority::kLow).ok());
  EXPECT_TRUE(PushUnit(queue, 6, 1, "b", TimePoint::max(), Priority::kHigh).ok());
  EXPECT_THAT(sink_->Of(0), SizeIs(1));
  EXPECT_THAT(sink_->Of(1), SizeIs(1));
  EXPECT_THAT(sink_->Of(5), IsEmpty());
  EXPECT_THAT(Names(queue.PopDue()), ElementsAre("6"));
  EXPECT_THAT(Names(queue.PopDue()), ElementsAre("5"));
}

TEST_F(RequestQueueUnit, TakesTurnsByTheTimeOfAllItsMembers) {
  RequestQueue queue({}, {}, clock_, model_, kMillisecondAToken);
  EXPECT_TRUE(PushUnit(queue, 0, 4, "much").ok());
  EXPECT_TRUE(PushUnit(queue, 4, 4, "much").ok());
  for (size_t i = 8; i < 12; ++i) EXPECT_TRUE(PushUnit(queue, i, 1, "little").ok());
  EXPECT_THAT(Names(queue.PopDue()), ElementsAre("0", "1", "2", "3"));
  for (const char* name : {"8", "9", "10", "11"}) {
    EXPECT_THAT(Names(queue.PopDue()), ElementsAre(name));
  }
  EXPECT_THAT(Names(queue.PopDue()), ElementsAre("4", "5", "6", "7"));
}

}  // namespace
}  // namespace linserve
