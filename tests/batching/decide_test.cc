#include "batching/decide.h"

#include <gmock/gmock.h>

#include <random>
#include <set>
#include <string>

#include "support/fakes/fake_clock.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

Waiting Of(int64_t rows, std::string_view key = "k", TimePoint enqueued = kStart) {
  return {.key = key, .rows = rows, .enqueued = enqueued};
}

constexpr BatchPolicy kNoDelay = {.max_tokens = 100, .max_sequences = 4, .max_delay = 0ns};
constexpr BatchPolicy kDelay = {.max_tokens = 100, .max_sequences = 4, .max_delay = 10ms};

TEST(Decide, HasNothingToDoBeforeTheQueueChangesIfNothingWaits) {
  for (const bool draining : {false, true}) {
    const Decision decision = Decide(kDelay, {}, kStart, draining);
    EXPECT_THAT(decision.take, IsEmpty());
    EXPECT_EQ(decision.wait_until, std::nullopt);
  }
}

TEST(Decide, StartsWithTheOldestSequence) {
  const Decision decision = Decide(kNoDelay, {Of(60), Of(50), Of(60)}, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0));
  EXPECT_EQ(decision.reason, CloseReason::kFull);
}

TEST(Decide, TakesAllThatWaitsAtOnceIfThePolicyKnowsNoDelay) {
  const Decision decision = Decide(kNoDelay, {Of(30), Of(40)}, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 1));
  EXPECT_EQ(decision.reason, CloseReason::kIdle);
  EXPECT_EQ(decision.wait_until, std::nullopt);
}

TEST(Decide, LetsSmallerYoungerSequencesOvertakeOneThatDoesNotFit) {
  const Decision decision =
      Decide(kNoDelay, {Of(60), Of(50), Of(10), Of(31), Of(30)}, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 2, 4));
  EXPECT_EQ(decision.reason, CloseReason::kFull);
}

TEST(Decide, LetsNobodyWaitLongerThanTheDelayWhoseTurnItIsNot) {
  const std::vector<Waiting> view = {Of(10, "urgent", kStart + 9ms), Of(10, "k", kStart)};
  const Decision waits = Decide(kDelay, view, kStart + 9ms, false);
  EXPECT_EQ(waits.wait_until, kStart + 10ms);
  const Decision decision = Decide(kDelay, view, kStart + 10ms, false);
  EXPECT_THAT(decision.take, ElementsAre(0));
  EXPECT_EQ(decision.reason, CloseReason::kDelay);
}

TEST(Decide, FillsTheBudgetToTheLastRowButNoFurther) {
  EXPECT_THAT(Decide(kNoDelay, {Of(60), Of(40), Of(1)}, kStart, false).take, ElementsAre(0, 1));
  EXPECT_THAT(Decide(kNoDelay, {Of(60), Of(41), Of(1)}, kStart, false).take, ElementsAre(0, 2));
}

TEST(Decide, ClosesAFullBatchWithoutWaitingForTheDelay) {
  const Decision decision = Decide(kDelay, {Of(60), Of(40)}, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 1));
  EXPECT_EQ(decision.reason, CloseReason::kFull);
}

TEST(Decide, TakesNoMoreThanMaxSequences) {
  const Decision decision = Decide(kDelay, {Of(1), Of(1), Of(1), Of(1), Of(1)}, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(decision.reason, CloseReason::kFull);
}

TEST(Decide, SendsASequenceLongerThanTheBudgetAlone) {
  const Decision first = Decide(kDelay, {Of(101), Of(1)}, kStart, false);
  EXPECT_THAT(first.take, ElementsAre(0));
  EXPECT_EQ(first.reason, CloseReason::kFull);
  // A long sequence does not join a batch that has begun either.
  EXPECT_THAT(Decide(kNoDelay, {Of(1), Of(101)}, kStart, false).take, ElementsAre(0));
}

TEST(Decide, TakesWhatIsToBeAloneWithoutCompanyAndWithoutWaitingForAny) {
  std::vector<Waiting> view = {Of(10), Of(10), Of(10)};
  view[0].alone = true;
  const Decision decision = Decide(kDelay, view, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0));
  EXPECT_EQ(decision.reason, CloseReason::kFull);
}

TEST(Decide, FillsABatchWithoutWhatIsToBeAlone) {
  std::vector<Waiting> view = {Of(10), Of(10), Of(10)};
  view[1].alone = true;
  const Decision decision = Decide(kDelay, view, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 2));
  EXPECT_EQ(decision.reason, CloseReason::kFull);
}

TEST(Decide, KeepsSequencesOfOtherKeysApart) {
  const Decision decision =
      Decide(kNoDelay, {Of(1, "a"), Of(1, "b"), Of(1, "a"), Of(1, "c")}, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 2));
  EXPECT_EQ(decision.reason, CloseReason::kLength);
}

TEST(Decide, DoesNotCountOtherKeysInTheBudget) {
  const Decision decision =
      Decide(kNoDelay, {Of(60, "a"), Of(60, "b"), Of(40, "a")}, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 2));
  EXPECT_EQ(decision.reason, CloseReason::kFull);
}

TEST(Decide, WaitsForCompanyUntilTheOldestHasWaitedMaxDelay) {
  const std::vector<Waiting> view = {Of(1), Of(1, "k", kStart + 9ms)};
  for (const TimePoint now : {kStart, kStart + 9ms, kStart + 10ms - 1ns}) {
    const Decision decision = Decide(kDelay, view, now, false);
    EXPECT_THAT(decision.take, IsEmpty());
    EXPECT_EQ(decision.wait_until, kStart + 10ms);
  }
}

TEST(Decide, ClosesTheBatchOnceTheOldestHasWaitedMaxDelay) {
  const std::vector<Waiting> view = {Of(1), Of(1, "other"), Of(1, "k", kStart + 9ms)};
  const Decision decision = Decide(kDelay, view, kStart + 10ms, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 2));
  EXPECT_EQ(decision.reason, CloseReason::kDelay);
  EXPECT_EQ(decision.wait_until, std::nullopt);
}

TEST(Decide, WaitsForNobodyWithWhatHasWaitedBefore) {
  Waiting next = Of(10);
  next.waited = true;
  const Decision decision = Decide(kDelay, {Of(10), next}, kStart, false);
  EXPECT_THAT(decision.take, ElementsAre(0, 1));
  EXPECT_EQ(decision.reason, CloseReason::kIdle);
}

TEST(Decide, WaitsForNobodyWhileDraining) {
  const Decision decision = Decide(kDelay, {Of(1), Of(2)}, kStart, true);
  EXPECT_THAT(decision.take, ElementsAre(0, 1));
  EXPECT_EQ(decision.reason, CloseReason::kDrain);
}

TEST(Decide, CallsABatchFullEvenWhileDraining) {
  EXPECT_EQ(Decide(kDelay, {Of(100), Of(2)}, kStart, true).reason, CloseReason::kFull);
}

// Checks what must hold of any decision, over many random queues.
class DecideProperty : public testing::TestWithParam<int> {
 protected:
  DecideProperty() {
    std::mt19937 random(static_cast<unsigned>(GetParam()));
    const auto below = [&](int limit) { return static_cast<int64_t>(random() % limit); };
    policy_ = {1 + below(200), 1 + below(20), std::chrono::milliseconds(below(3) * 5)};
    const int64_t count = 1 + below(60);
    for (int64_t i = 0; i < count; ++i) {
      view_.push_back(Of(1 + below(80), kKeys[below(3)], kStart + std::chrono::milliseconds(i)));
      view_.back().alone = view_.back().rows > 70;
    }
    now_ = kStart + std::chrono::milliseconds(below(20));
    draining_ = below(4) == 0;
  }

  static constexpr const char* kKeys[] = {"a", "b", "c"};
  BatchPolicy policy_;
  std::vector<Waiting> view_;
  TimePoint now_;
  bool draining_ = false;
};

TEST_P(DecideProperty, TakesTheOldestWithinTheLimitsAndOfOneKey) {
  const Decision decision = Decide(policy_, view_, now_, draining_);
  if (decision.take.empty()) {
    // Only patience keeps a worker idle, and it ends in the future.
    ASSERT_TRUE(decision.wait_until.has_value());
    EXPECT_GT(*decision.wait_until, now_);
    EXPECT_FALSE(draining_);
    EXPECT_GT(policy_.max_delay.count(), 0);
    return;
  }
  EXPECT_EQ(decision.take[0], 0u);
  EXPECT_LE(static_cast<int64_t>(decision.take.size()), policy_.max_sequences);
  int64_t rows = 0;
  for (size_t i = 0; i < decision.take.size(); ++i) {
    if (i > 0) {
      EXPECT_GT(decision.take[i], decision.take[i - 1]);
    }
    EXPECT_EQ(view_[decision.take[i]].key, view_[0].key);
    rows += view_[decision.take[i]].rows;
    EXPECT_TRUE(decision.take.size() == 1 || !view_[decision.take[i]].alone);
  }
  if (decision.take.size() > 1) {
    EXPECT_LE(rows, policy_.max_tokens);
  }
  // No sequence that would fit is left behind.
  const std::set<size_t> taken(decision.take.begin(), decision.take.end());
  if (static_cast<int64_t>(taken.size()) == policy_.max_sequences || view_[0].alone) return;
  for (size_t i = 0; i < view_.size(); ++i) {
    if (view_[i].key == view_[0].key && !taken.contains(i) && !view_[i].alone) {
      EXPECT_GT(rows + view_[i].rows, policy_.max_tokens) << i;
    }
  }
}

TEST_P(DecideProperty, GivesTheSameDecisionForTheSameInput) {
  const Decision first = Decide(policy_, view_, now_, draining_);
  Decide(kNoDelay, {Of(1)}, kStart, false);  // another queue does this in between
  const Decision second = Decide(policy_, std::vector<Waiting>(view_), now_, draining_);
  EXPECT_EQ(first.take, second.take);
  EXPECT_EQ(first.reason, second.reason);
  EXPECT_EQ(first.wait_until, second.wait_until);
}

TEST_P(DecideProperty, EmptiesTheQueueInFiniteTime) {
  size_t batches = 0;
  const size_t sequences = view_.size();
  while (!view_.empty()) {
    const Decision decision = Decide(policy_, view_, now_, draining_);
    if (decision.wait_until) {
      now_ = *decision.wait_until;
      continue;
    }
    ASSERT_LE(++batches, sequences);
    for (size_t i = decision.take.size(); i-- > 0;) {
      view_.erase(view_.begin() + static_cast<std::ptrdiff_t>(decision.take[i]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Queues, DecideProperty, testing::Range(0, 60));

}  // namespace
}  // namespace linserve
