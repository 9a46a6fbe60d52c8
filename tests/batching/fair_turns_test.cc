#include "batching/fair_turns.h"

#include <gtest/gtest.h>

#include "support/fakes/fake_clock.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;

TEST(FairTurns, WhoHasNothingWaitingIsDueNow) {
  FairTurns turns;
  EXPECT_EQ(turns.Next("a", kStart), kStart);
  turns.Reserve("a", kStart + 5s, kStart);
  EXPECT_EQ(turns.Next("b", kStart), kStart);
}

TEST(FairTurns, WhoHasMuchWaitingIsDueAfterIt) {
  FairTurns turns;
  turns.Reserve("a", kStart + 5s, kStart);
  EXPECT_EQ(turns.Next("a", kStart + 1s), kStart + 5s);
  EXPECT_EQ(turns.Next("a", kStart + 6s), kStart + 6s);
}

TEST(FairTurns, WorkThatIsNotDoneIsGivenBack) {
  FairTurns turns;
  turns.Reserve("a", kStart + 5s, kStart);
  turns.GiveBack("a", 1s);
  turns.GiveBack("a", 1s);
  turns.GiveBack("nobody", 1s);
  EXPECT_EQ(turns.Next("a", kStart), kStart + 3s);
}

TEST(FairTurns, TheTimeGoesByWhatIsComputed) {
  FairTurns turns;
  turns.Reserve("busy", kStart + 60s, kStart);
  turns.Begin(kStart + 2s);
  // The workers are slower than was thought: who comes now does not wait for what should be done.
  EXPECT_EQ(turns.Next("new", kStart + 5s), kStart + 2s);
  EXPECT_EQ(turns.Next("new", kStart + 1s), kStart + 1s);
  EXPECT_EQ(turns.Next("new", kStart + 1h), kStart + 1h - 10s);
  EXPECT_EQ(turns.Next("busy", kStart + 5s), kStart + 60s);
  turns.AllBegun();
  EXPECT_EQ(turns.Next("new", kStart + 5s), kStart + 5s);
  EXPECT_EQ(turns.Next("busy", kStart + 5s), kStart + 5s);
}

TEST(FairTurns, WhoHasNothingWaitingIsForgotten) {
  FairTurns turns;
  turns.Reserve("busy", kStart + 10h, kStart);
  for (int i = 0; i < 5000; ++i) {
    const TimePoint now = kStart + i * 1s;
    turns.Reserve(std::to_string(i), now + 1s, now);
  }
  // This caller is remembered, because it has a backlog.
  EXPECT_EQ(turns.Next("busy", kStart), kStart + 10h);
  EXPECT_EQ(turns.Next("0", kStart), kStart);
}

}  // namespace
}  // namespace linserve
