#include "attention/local/continued_local_attention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attention/heads.h"
#include "attention/layouts.h"
#include "attention/local/local_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr int64_t kLocalLength = 60;

class ContinueLocalAttentionTest : public testing::TestWithParam<int64_t> {
 protected:
  // Returns rows from `rows[i]` on of each sequence i.
  static at::Tensor From(const at::Tensor& x, const std::vector<int64_t>& rows, int64_t count) {
    std::vector<at::Tensor> parts;
    for (size_t i = 0; i < rows.size(); ++i) {
      parts.push_back(x[static_cast<int64_t>(i)].narrow(-2, rows[i], count));
    }
    return at::stack(parts);
  }

  at::Tensor Next(const std::vector<int64_t>& rows, int64_t count, const WindowRows& seen) const {
    at::Tensor out = at::empty({static_cast<int64_t>(rows.size()), kHeads, count, kWidth});
    ContinueLocalAttention(From(queries_, rows, count), From(keys_, rows, count),
                           From(values_, rows, count), rows, GetParam(), seen, out);
    return out;
  }

  at::Tensor Whole() const {
    at::Tensor out = at::empty_like(queries_);
    LocalAttention(queries_, keys_, values_, {}, GetParam(), /*causal=*/true, out);
    return out;
  }

  static WindowRows Empty(int64_t sequences) {
    const at::Tensor rows = at::zeros({sequences, kHeads, 2 * GetParam(), kWidth});
    return {rows, rows.clone()};
  }

  at::Tensor queries_ = RandomHeads(2, kLocalLength);
  at::Tensor keys_ = RandomHeads(2, kLocalLength);
  at::Tensor values_ = RandomHeads(2, kLocalLength);
};

INSTANTIATE_TEST_SUITE_P(Windows, ContinueLocalAttentionTest, testing::Values(1, 2, 7, 16, 100));

TEST_P(ContinueLocalAttentionTest, GivesTheRowsOfTheWholeSequenceInAnyChunks) {
  const at::Tensor whole = Whole();
  for (int64_t chunk : {int64_t{1}, int64_t{5}, int64_t{33}, kLocalLength}) {
    const WindowRows seen = Empty(2);
    for (int64_t row = 0; row < kLocalLength; row += chunk) {
      const int64_t count = std::min(chunk, kLocalLength - row);
      EXPECT_LT(LargestDifference(Next({row, row}, count, seen), whole.narrow(-2, row, count)),
                1e-5)
          << "chunk " << chunk << ", row " << row;
    }
  }
}

TEST_P(ContinueLocalAttentionTest, GivesThemRowByRowAndAStepThatCameToNothingLeavesNoTrace) {
  const at::Tensor whole = Whole();
  const auto rows = Empty(1);
  const WindowRows seen{rows.keys[0], rows.values[0]};
  for (int64_t row = 0; row < kLocalLength; ++row) {
    const auto of = [&](const at::Tensor& x) { return x[0].narrow(-2, row, 1); };
    at::Tensor out = at::empty({kHeads, 1, kWidth});
    const at::Tensor other = at::randn({kHeads, 1, kWidth});
    StepLocalAttention(other, other, other, row, GetParam(), seen, out);
    StepLocalAttention(of(queries_), of(keys_), of(values_), row, GetParam(), seen, out);
    EXPECT_LT(LargestDifference(out, of(whole)), 1e-5) << "row " << row;
  }
}

TEST_P(ContinueLocalAttentionTest, SequencesMayBeInDifferentPlacesOfTheirWindows) {
  const at::Tensor whole = Whole();
  const WindowRows seen = Empty(2);
  Next({0}, 11, {seen.keys.narrow(0, 0, 1), seen.values.narrow(0, 0, 1)});
  for (int64_t row = 0; row + 8 <= kLocalLength - 11; row += 8) {
    const std::vector<int64_t> rows = {row + 11, row};
    EXPECT_LT(LargestDifference(Next(rows, 8, seen), From(whole, rows, 8)), 1e-5) << row;
  }
}

}  // namespace
}  // namespace linserve
