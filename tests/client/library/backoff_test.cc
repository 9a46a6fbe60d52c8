#include "client/library/backoff.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, PausesGrowUpToTheLargest) {
  Backoff backoff({milliseconds(100), milliseconds(500), 2}, 7);
  for (int range_ms : {100, 200, 400, 500, 500, 500}) {
    const auto pause = backoff.Next();
    EXPECT_GE(pause, milliseconds(range_ms) / 2);
    EXPECT_LE(pause, milliseconds(range_ms));
  }
}

TEST(Backoff, ClientsOfUnequalSeedsDoNotPauseTogether) {
  Backoff one({}, 1);
  Backoff other({}, 2);
  EXPECT_NE(one.Next(), other.Next());
}

TEST(Backoff, AFirstPauseBeyondTheLargestIsCutToIt) {
  Backoff backoff({milliseconds(900), milliseconds(300), 2}, 7);
  EXPECT_LE(backoff.Next(), milliseconds(300));
}

}  // namespace
}  // namespace linserve
