#include "program/serve/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace linserve {
namespace {

using testing::HasSubstr;

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr int64_t kProgram = 100 * kMebibyte;

TEST(MemoryPlan, SharesOutAllThatThereIs) {
  const MemoryPlan plan = PlanMemory(16 * kGibibyte, kProgram, {kGibibyte}, {});
  EXPECT_EQ(plan.total(), 16 * kGibibyte);
  EXPECT_EQ(plan.inflight, 4 * kGibibyte);
  EXPECT_EQ(plan.sessions, 2 * kGibibyte);
  EXPECT_EQ(plan.scratch, 2 * kGibibyte);
  EXPECT_EQ(plan.cache, 0);
  EXPECT_EQ(plan.warning, "");
}

TEST(MemoryPlan, NeverSharesOutMoreThanThereIsWithoutSayingSo) {
  for (int64_t limit = 64 * kMebibyte; limit <= 64 * kGibibyte; limit += limit / 3) {
    for (const int64_t model : {int64_t{0}, kMebibyte, 145 * kMebibyte, 6 * kGibibyte}) {
      const MemoryPlan plan = PlanMemory(limit, kProgram, {model, model / 2}, {});
      EXPECT_EQ(plan.total() > limit, plan.warning.starts_with("the memory plan does not fit"))
          << limit << " " << model;
      for (const int64_t part : {plan.weights, plan.inflight, plan.sessions, plan.scratch}) {
        EXPECT_GT(part, 0) << limit << " " << model;
      }
    }
  }
}

TEST(MemoryPlan, LeavesRoomForASuccessorOfTheLargestModel) {
  for (const int64_t limit : {kGibibyte, 2 * kGibibyte, 16 * kGibibyte}) {
    const int64_t largest = limit / 4;
    const MemoryPlan plan = PlanMemory(limit, kProgram, {largest / 4, largest}, {});
    EXPECT_GE(plan.weights, largest / 4 + 2 * largest) << limit;
    EXPECT_EQ(plan.warning, "") << limit;
  }
}

TEST(MemoryPlan, SaysThatASuccessorDoesNotFitWhereItLeavesNoRoom) {
  const MemoryPlan plan = PlanMemory(400 * kMebibyte, kProgram, {145 * kMebibyte}, {});
  EXPECT_LE(plan.total(), 400 * kMebibyte);
  EXPECT_GE(plan.weights, 145 * kMebibyte);
  EXPECT_LT(plan.weights, 290 * kMebibyte);
  EXPECT_THAT(plan.warning, HasSubstr("that takes 290.0 MiB of weights"));
}

TEST(MemoryPlan, SaysWhatDoesNotFitIntoALittle) {
  const MemoryPlan plan = PlanMemory(256 * kMebibyte, kProgram, {145 * kMebibyte}, {});
  EXPECT_EQ(plan.weights, 145 * kMebibyte);
  EXPECT_THAT(plan.warning, HasSubstr("the weights of the models 145.0 MiB"));
  EXPECT_THAT(plan.warning, HasSubstr("together 285.0 MiB of 256.0 MiB"));
}

TEST(MemoryPlan, LetsNoModelBeLoadedThatIsLargerThanTheMemory) {
  const MemoryPlan plan = PlanMemory(256 * kMebibyte, kProgram, {200 * kMebibyte}, {});
  EXPECT_EQ(plan.weights, 156 * kMebibyte);
}

TEST(MemoryPlan, FitsALittleWithASmallModel) {
  const MemoryPlan plan = PlanMemory(256 * kMebibyte, kProgram, {kMebibyte}, {});
  EXPECT_EQ(plan.total(), 256 * kMebibyte);
  EXPECT_EQ(plan.inflight, 64 * kMebibyte);
  EXPECT_EQ(plan.warning, "");
}

TEST(MemoryPlan, IsOverruledByOptions) {
  const MemoryPlan plan =
      PlanMemory(4 * kGibibyte, kProgram, {kMebibyte},
                 {.inflight = 10 * kMebibyte, .sessions = kGibibyte, .weights = 300 * kMebibyte});
  EXPECT_EQ(plan.inflight, 10 * kMebibyte);
  EXPECT_EQ(plan.sessions, kGibibyte);
  EXPECT_EQ(plan.weights, 300 * kMebibyte);
  EXPECT_EQ(plan.warning, "");
}

TEST(MemoryPlan, SaysThatWhatTheOptionsSayDoesNotFit) {
  for (const MemoryOptions& options :
       {MemoryOptions{.inflight = 2 * kGibibyte}, MemoryOptions{.sessions = 2 * kGibibyte},
        MemoryOptions{.weights = 2 * kGibibyte}, MemoryOptions{.cache = 2 * kGibibyte}}) {
    const MemoryPlan plan = PlanMemory(kGibibyte, kProgram, {kMebibyte}, options);
    EXPECT_THAT(plan.warning, HasSubstr("of 1.0 GiB; raise the memory limit"));
  }
}

}  // namespace
}  // namespace linserve
