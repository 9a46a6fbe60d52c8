#include "attention/local/local_attention.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

at::Tensor AttendLocal(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       int64_t window, bool causal = false, const at::Tensor& mask = {}) {
  at::Tensor out = at::empty_like(queries);
  LocalAttention(queries, keys, values, mask, window, causal, out);
  return out;
}

// Says which keys each row sees.
at::Tensor Seen(int64_t length, int64_t window, bool causal) {
  const at::Tensor rows = at::arange(length);
  const at::Tensor windows = rows.div(window, "floor");
  const at::Tensor distance = windows.unsqueeze(1) - windows.unsqueeze(0);
  const at::Tensor near = distance.abs().le(1);
  return causal ? near.logical_and(rows.unsqueeze(0).le(rows.unsqueeze(1))) : near;
}

// Computes the formula as it stands, in F64, with all pairs of rows.
at::Tensor NaiveLocal(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                      const at::Tensor& seen) {
  const at::Tensor scores =
      at::matmul(queries.to(at::kDouble), keys.to(at::kDouble).transpose(-2, -1)) /
      std::sqrt(static_cast<double>(queries.size(-1)));
  const at::Tensor weights = at::softmax(scores.masked_fill(seen.logical_not(), -INFINITY), -1);
  return at::matmul(weights, values.to(at::kDouble));
}

TEST(LocalAttention, OfOneTokenIsItsValue) {
  const at::Tensor values = Matrix({{1, 2, 3, 4}});
  for (bool causal : {false, true}) {
    const at::Tensor result =
        AttendLocal(at::randn({1, 4}), at::randn({1, 4}), values, 128, causal);
    EXPECT_LT(LargestDifference(result, values), 1e-6);
  }
}

TEST(LocalAttention, SeesOneWindowToEachSide) {
  const at::Tensor zeros = at::zeros({6, 1});
  const at::Tensor values = Matrix({{1}, {2}, {30}, {40}, {500}, {600}});
  const double first = 73.0 / 4;
  const double all = 1173.0 / 6;
  const double last = 1170.0 / 4;
  const at::Tensor expected =
      at::tensor({first, first, all, all, last, last}, at::kFloat).unsqueeze(1);
  EXPECT_LT(LargestDifference(AttendLocal(zeros, zeros, values, 2), expected), 1e-4);
}

TEST(LocalAttention, IfCausalSeesTheWindowBeforeAndItsOwnUpToItself) {
  const at::Tensor zeros = at::zeros({5, 1});
  const at::Tensor values = Matrix({{1}, {2}, {30}, {40}, {500}});
  const at::Tensor expected =
      at::tensor({1.0, 1.5, 11.0, 73.0 / 4, 570.0 / 3}, at::kFloat).unsqueeze(1);
  EXPECT_LT(LargestDifference(AttendLocal(zeros, zeros, values, 2, true), expected), 1e-4);
}

TEST(LocalAttention, IsTheFormulaForAnyLengthAndWindow) {
  for (int64_t window : {1, 2, 5, 16}) {
    for (int64_t length : {1, 2, 5, 6, 15, 16, 17, 48, 50}) {
      for (bool causal : {false, true}) {
        const at::Tensor queries = at::randn({2, 3, length, 4}) * 2;
        const at::Tensor keys = at::randn({2, 3, length, 4});
        const at::Tensor values = at::randn({2, 3, length, 4});
        const at::Tensor seen = Seen(length, window, causal);
        EXPECT_LT(LargestDifference(AttendLocal(queries, keys, values, window, causal),
                                    NaiveLocal(queries, keys, values, seen)),
                  1e-5)
            << length << " rows, window " << window << ", causal " << causal;
      }
    }
  }
}

TEST(LocalAttention, LeavesMaskedKeysOut) {
  const at::Tensor x = at::randn({2, 3, 23, 4});
  at::Tensor mask = at::rand({2, 1, 23}).lt(0.5);
  mask.select(-1, 0).fill_(true);
  for (bool causal : {false, true}) {
    const at::Tensor seen = Seen(23, 8, causal).logical_and(mask.unsqueeze(-2));
    const at::Tensor some = seen.any(-1, /*keepdim=*/true);  // the others are of no use
    const at::Tensor expected = at::where(some, NaiveLocal(x, x, x, seen), 0.0);
    EXPECT_LT(
        LargestDifference(at::where(some, AttendLocal(x, x, x, 8, causal, mask), 0.0), expected),
        1e-5);
  }
}

TEST(LocalAttention, AveragesAllSlotsWhereEveryKeyIsMasked) {
  const at::Tensor x = Matrix({{5}, {7}});
  // Four slots outside the sequence hold -1.
  const at::Tensor result = AttendLocal(x, x, x, 2, false, at::zeros({2}, at::kBool));
  EXPECT_LT(LargestDifference(result, at::full({2, 1}, (5.0 + 7.0 - 4.0) / 6)), 1e-6);
}

TEST(LocalAttention, ComputesWideWindowsInSlicesWithTheSameResult) {
  const int64_t length = 3000;
  const int64_t window = 2000;  // 2000 · 6000 scores: more than are held at once
  const at::Tensor x = at::randn({1, length, 4});
  for (bool causal : {false, true}) {
    const at::Tensor result = AttendLocal(x, x, x, window, causal);
    for (int64_t row : {0, 698, 699, 700, 1999, 2000, 2999}) {
      const int64_t end = causal ? row + 1 : length;
      const at::Tensor scores = at::mv(x[0].narrow(0, 0, end), x[0][row]) / 2;
      const at::Tensor expected = at::mv(x[0].narrow(0, 0, end).t(), at::softmax(scores, 0));
      EXPECT_LT(LargestDifference(result[0][row], expected), 1e-5) << row;
    }
  }
}

TEST(LocalAttention, ComputesManyWindowsInSlicesWithTheSameResult) {
  const int64_t length = 200000;  // times 24 slots: more scores than are held at once
  const at::Tensor x = at::randn({1, length, 2});
  const at::Tensor result = AttendLocal(x, x, x, 8);
  for (int64_t window : {int64_t{0}, int64_t{21844}, int64_t{21845}, length / 8 - 1}) {
    const int64_t begin = std::max<int64_t>(window - 1, 0) * 8;
    const int64_t end = std::min((window + 2) * 8, length);
    const at::Tensor near = x[0].narrow(0, begin, end - begin);
    const at::Tensor query = x[0][window * 8];
    const at::Tensor weights = at::softmax(at::mv(near, query) / std::sqrt(2.0), 0);
    EXPECT_LT(LargestDifference(result[0][window * 8], at::mv(near.t(), weights)), 1e-5) << window;
  }
}

TEST(LocalAttention, StaysFiniteForLargeNumbersInSmallTypes) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor x = (at::randn({3, 20, 4}).sign() * 1e4).to(type);
    for (const at::Tensor& mask : {at::Tensor(), at::zeros({20}, at::kBool)}) {
      EXPECT_TRUE(AttendLocal(x, x, x, 8, false, mask).isfinite().all().item<bool>());
      EXPECT_TRUE(AttendLocal(x, x, x, 8, true, mask).isfinite().all().item<bool>());
    }
  }
}

TEST(LocalAttentionPairs, CountsTheKeysOfTheWindowsThatEachQuerySees) {
  EXPECT_EQ(LocalAttentionPairs(1, 4, false), 1);
  EXPECT_EQ(LocalAttentionPairs(6, 2, false), 2 * 4 + 2 * 6 + 2 * 4);
  EXPECT_EQ(LocalAttentionPairs(5, 2, true), 2 * 2 + 2 * 4 + 1 * 3);
  for (int64_t length = 1; length < 12; ++length) {
    for (int64_t window = 1; window < 14; ++window) {
      std::array<double, 2> pairs{};
      for (int64_t query = 0; query < length; ++query) {
        for (int64_t key = 0; key < length; ++key) {
          const int64_t ahead = key / window - query / window;
          if (std::abs(ahead) <= 1) ++pairs[0];
          if (ahead == 0 || ahead == -1) ++pairs[1];
        }
      }
      EXPECT_EQ(LocalAttentionPairs(length, window, false), pairs[0]) << length << ' ' << window;
      EXPECT_EQ(LocalAttentionPairs(length, window, true), pairs[1]) << length << ' ' << window;
    }
  }
}

}  // namespace
}  // namespace linserve
