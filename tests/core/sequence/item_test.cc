#include "core/sequence/item.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::Pair;

struct RecordingSink : ResultSink {
  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override {
    delivered.emplace_back(index, result.status().code());
  }
  bool Abandoned() const override { return abandoned; }

  std::vector<std::pair<size_t, absl::StatusCode>> delivered;
  bool abandoned = false;
};

TEST(Delivery, AnswersOnceHoweverOftenItIsCompleted) {
  const auto sink = std::make_shared<RecordingSink>();
  {
    Delivery delivery(sink, 3);
    delivery.Complete(ItemResult{});
    delivery.Complete(absl::CancelledError("late"));
  }
  EXPECT_THAT(sink->delivered, ElementsAre(Pair(3, absl::StatusCode::kOk)));
}

TEST(Delivery, DroppedUnansweredAnswersInternal) {
  const auto sink = std::make_shared<RecordingSink>();
  { Delivery delivery(sink, 1); }
  EXPECT_THAT(sink->delivered, ElementsAre(Pair(1, absl::StatusCode::kInternal)));
}

TEST(Delivery, IsAnsweredByTheOneItWasMovedTo) {
  const auto sink = std::make_shared<RecordingSink>();
  {
    Delivery first(sink, 1);
    Delivery second(std::move(first));
    second.Complete(ItemResult{});
  }
  EXPECT_THAT(sink->delivered, ElementsAre(Pair(1, absl::StatusCode::kOk)));
}

TEST(Delivery, AssignedOverStillAnswersBoth) {
  const auto sink = std::make_shared<RecordingSink>();
  {
    Delivery first(sink, 1);
    Delivery second(sink, 2);
    first = std::move(second);
    first.Complete(ItemResult{});
  }
  EXPECT_THAT(sink->delivered,
              ElementsAre(Pair(2, absl::StatusCode::kOk), Pair(1, absl::StatusCode::kInternal)));
}

TEST(Delivery, ReleasedAnswersNothing) {
  const auto sink = std::make_shared<RecordingSink>();
  Delivery(sink, 1).Release();
  EXPECT_TRUE(sink->delivered.empty());
}

TEST(Delivery, KnowsWhetherAnyoneWaits) {
  const auto sink = std::make_shared<RecordingSink>();
  const Delivery delivery(sink, 1);
  EXPECT_FALSE(delivery.Abandoned());
  sink->abandoned = true;
  EXPECT_TRUE(delivery.Abandoned());
}

}  // namespace
}  // namespace linserve
