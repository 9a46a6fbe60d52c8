#include "client/load/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>

namespace linserve {
namespace {

TEST(PoissonArrivals, KeepTheirRateAndTheirIrregularity) {
  PoissonArrivals arrivals(1000, 4);
  constexpr int kCount = 100000;
  double last_s = 0;
  double sum = 0;
  double sum_of_squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double at_s = std::chrono::duration<double>(arrivals.Next()).count();
    ASSERT_GE(at_s, last_s);
    sum += at_s - last_s;
    sum_of_squares += (at_s - last_s) * (at_s - last_s);
    last_s = at_s;
  }
  const double mean = sum / kCount;
  const double deviation = std::sqrt(sum_of_squares / kCount - mean * mean);
  EXPECT_NEAR(mean, 1e-3, 1e-5);
  EXPECT_NEAR(deviation, 1e-3, 2e-5);
}

TEST(PoissonArrivals, AreTheSameForTheSameSeed) {
  PoissonArrivals one(10, 5);
  PoissonArrivals same(10, 5);
  PoissonArrivals other(10, 6);
  const auto first = one.Next();
  EXPECT_EQ(first, same.Next());
  EXPECT_NE(first, other.Next());
}

}  // namespace
}  // namespace linserve
