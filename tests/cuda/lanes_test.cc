#include "cuda/kernels/lanes.h"

#include <gmock/gmock.h>

#include <array>

#include "cuda/grid.h"

namespace linserve::cuda {
namespace {

constexpr int kWarps = 4;

// Gives each warp what the one before it has written, and says whether all of them saw that.
bool PassesOn(bool waits) {
  std::array<int, kWarps> shared{};
  std::array<int, kWarps> seen{};
  const auto write = [&](int warp) { shared.at(static_cast<size_t>(warp)) = warp + 1; };
  const auto read = [&](int warp) {
    if (warp > 0) seen.at(static_cast<size_t>(warp)) = shared.at(static_cast<size_t>(warp) - 1);
  };
  if (waits) {
    ForWarps<kWarps>(write);
    ForWarps<kWarps>(read);
  } else {
    ForWarps<kWarps>([&](int warp) {
      write(warp);
      read(warp);
    });
  }
  return seen == std::array<int, kWarps>{0, 1, 2, 3};
}

// The kernels' tests rely on it: racecheck of the CUDA toolkit fails in these kernels by itself.
TEST(ForGrid, MakesARaceOfWarpsVisible) {
  int right = 0;
  int right_without_waiting = 0;
  ForGrid({2, 1, 1}, [&](const BlockIndex&) {
    right += PassesOn(true) ? 1 : 0;
    right_without_waiting += PassesOn(false) ? 1 : 0;
  });
  EXPECT_EQ(right, 2);
  EXPECT_EQ(right_without_waiting, 1);
}

TEST(ForGrid, GoesThroughTheWarpsOfASingleBlockInBothOrders) {
  int right = 0;
  for (int call = 0; call < 2; ++call) {
    ForGrid({1, 1, 1}, [&](const BlockIndex&) { right += PassesOn(false) ? 1 : 0; });
  }
  EXPECT_EQ(right, 1);
}

}  // namespace
}  // namespace linserve::cuda
