#include "attention/linear/continued_linear_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attention/heads.h"
#include "attention/layouts.h"
#include "attention/linear/causal_linear_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

ContinuedSums Empty(int64_t sequences) {
  const at::Tensor context = at::zeros({sequences, kHeads, kWidth, kWidth});
  const at::Tensor column = at::zeros({sequences, kHeads, kWidth, 1});
  return {context, column, column.clone(), context.clone(), column.clone(), column.clone()};
}

// Holds rows [sequences, heads, length, width] of some sequences of equal length, whose first ones
// begin `positions` rows in.
struct Sequences {
  at::Tensor queries, keys, values;

  at::Tensor Whole(int64_t bucket) const {
    at::Tensor out = at::empty_like(queries);
    CausalState state;
    CausalLinearAttention(queries, keys, values, {}, bucket, state, out);
    return out;
  }

  // Returns the rows [row, row + count), which come next.
  at::Tensor Next(int64_t row, int64_t count, int64_t bucket, const ContinuedSums& sums) const {
    const auto part = [&](const at::Tensor& x) { return x.narrow(-2, row, count); };
    at::Tensor out = at::empty_like(part(queries));
    const std::vector<int64_t> positions(static_cast<size_t>(queries.size(0)), row);
    ContinueLinearAttention(part(queries), part(keys), part(values), positions, bucket, sums, out);
    return out;
  }
};

void ExpectEqualInAnyChunks(const Sequences& sequences, int64_t bucket, double tolerance) {
  const at::Tensor whole = sequences.Whole(bucket);
  const int64_t length = whole.size(-2);
  for (int64_t chunk : {int64_t{1}, int64_t{3}, int64_t{70}, length}) {
    const ContinuedSums sums = Empty(whole.size(0));
    for (int64_t row = 0; row < length; row += chunk) {
      const int64_t count = std::min(chunk, length - row);
      EXPECT_LT(
          LargestDifference(sequences.Next(row, count, bucket, sums), whole.narrow(-2, row, count)),
          tolerance)
          << "bucket " << bucket << ", chunk " << chunk << ", row " << row;
    }
  }
}

TEST(ContinueLinearAttention, GivesTheRowsOfTheWholeSequenceInAnyChunksAndBuckets) {
  for (int64_t bucket : {1, 2, 5, 64, 100}) {
    ExpectEqualInAnyChunks({RandomHeads(2, 150), RandomHeads(2, 150), RandomHeads(2, 150)}, bucket,
                           1e-5);
  }
}

TEST(ContinueLinearAttention, HoldsForKeysWhoseExponentialsF32CannotHold) {
  for (double scale : {20.0, 40.0, 100.0}) {
    for (int64_t bucket : {1, 3, 70}) {
      const at::Tensor keys = RandomHeads(2, 150) * scale;
      // Queries that weigh a feature whose keys are small against those whose keys are large.
      ExpectEqualInAnyChunks({RandomHeads(2, 150) * 50, keys, RandomHeads(2, 150)}, bucket, 1e-4);
    }
  }
}

TEST(ContinueLinearAttention, DividesByTheFloorWhereTheKeysAreVeryNegative) {
  const Sequences sequences{RandomHeads(1, 20), RandomHeads(1, 20) - 9, RandomHeads(1, 20)};
  ExpectEqualInAnyChunks(sequences, 1, 1e-6);
  ExpectEqualInAnyChunks(sequences, 4, 1e-6);
}

TEST(ContinueLinearAttention, SequencesOfDifferentPositionsMayBeInDifferentPlacesOfTheirBuckets) {
  constexpr int64_t kBucket = 5;
  const Sequences both{RandomHeads(2, 40), RandomHeads(2, 40), RandomHeads(2, 40)};
  const at::Tensor whole = both.Whole(kBucket);
  // The second sequence is 7 rows ahead.
  ContinuedSums sums = Empty(2);
  const auto second = [](const at::Tensor& x) { return x.narrow(0, 1, 1); };
  Sequences({second(both.queries), second(both.keys), second(both.values)})
      .Next(0, 7, kBucket,
            {second(sums.context), second(sums.total), second(sums.shift),
             second(sums.open_context), second(sums.open_total), second(sums.open_shift)});
  for (int64_t row = 0; row + 9 <= 33; row += 9) {
    const auto part = [&](const at::Tensor& x) {
      return at::stack({x[0].narrow(-2, row, 9), x[1].narrow(-2, row + 7, 9)});
    };
    at::Tensor out = at::empty({2, kHeads, 9, kWidth});
    ContinueLinearAttention(part(both.queries), part(both.keys), part(both.values), {row, row + 7},
                            kBucket, sums, out);
    EXPECT_LT(LargestDifference(out, part(whole)), 1e-5) << row;
  }
}

}  // namespace
}  // namespace linserve
