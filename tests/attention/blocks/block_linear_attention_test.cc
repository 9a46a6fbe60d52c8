#include "attention/blocks/block_linear_attention.h"

#include <gtest/gtest.h>

#include <limits>

#include "attention/layouts.h"
#include "attention/linear/linear_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr int64_t kBlockHeads = 3;
constexpr int64_t kBlockWidth = 8;

struct Sequence {
  at::Tensor queries, keys, values;  // [n, heads · width]

  explicit Sequence(int64_t length)
      : queries(at::randn({length, kBlockHeads * kBlockWidth})),
        keys(at::randn({length, kBlockHeads * kBlockWidth}) * 3),
        values(at::randn({length, kBlockHeads * kBlockWidth})) {}

  int64_t length() const { return queries.size(0); }
  static at::Tensor Heads(const at::Tensor& rows) {
    return rows.view({rows.size(0), kBlockHeads, kBlockWidth}).transpose(0, 1);
  }
};

// Computes it in slices of `slice` rows, on copies.
at::Tensor Global(const Sequence& sequence, int64_t slice) {
  const at::Tensor queries = sequence.queries.clone();
  const at::Tensor keys = sequence.keys.clone();
  const at::Tensor out = at::empty_like(queries);
  BlockLinearAttention attention({.heads = kBlockHeads, .dim_head = kBlockWidth});
  attention.Begin();
  for (int64_t row = 0; row < sequence.length(); row += slice) {
    attention.Add(BlockOf(keys, row), BlockOf(sequence.values, row),
                  std::min(slice, sequence.length() - row));
  }
  attention.Finish();
  ForBlocks(sequence.length(), attention.ScratchElements(),
            [&](int64_t row, int64_t count, float* scratch) {
              attention.Attend(BlockOf(queries, row), count, BlockOf(out, row), scratch);
            });
  return out;
}

at::Tensor Causal(const Sequence& sequence, int64_t slice, int64_t bucket = 1) {
  const at::Tensor queries = sequence.queries.clone();
  const at::Tensor keys = sequence.keys.clone();
  const at::Tensor values = sequence.values.clone();
  BlockCausalAttention attention(kBlockHeads, kBlockWidth, {}, bucket);
  attention.Begin();
  for (int64_t row = 0; row < sequence.length(); row += slice) {
    attention.Attend(BlockOf(queries, row), BlockOf(keys, row), BlockOf(values, row),
                     std::min(slice, sequence.length() - row));
  }
  return queries;
}

at::Tensor CausalFormula(const Sequence& sequence, int64_t bucket = 1) {
  const at::Tensor out = at::empty_like(sequence.queries);
  CausalState state;
  const at::Tensor heads = Sequence::Heads(out);
  CausalLinearAttention(Sequence::Heads(sequence.queries), Sequence::Heads(sequence.keys),
                        Sequence::Heads(sequence.values), {}, bucket, state, heads);
  return out;
}

TEST(BlockLinearAttention, IsLinearAttentionInSlicesOfAnySize) {
  for (const int64_t length : {1, 63, 200}) {
    const Sequence sequence(length);
    const at::Tensor expected = at::empty_like(sequence.queries);
    const at::Tensor heads = Sequence::Heads(expected);
    LinearAttention(Sequence::Heads(sequence.queries), Sequence::Heads(sequence.keys),
                    Sequence::Heads(sequence.values), {}, heads);
    for (const int64_t slice : {1, 50, 128}) {
      EXPECT_LT(LargestDifference(Global(sequence, slice), expected), 1e-5);
    }
  }
}

TEST(BlockLinearAttention, LeavesHiddenRowsOutWhereverTheyStand) {
  Sequence sequence(20);
  Sequence rest(14);
  rest.queries = sequence.queries.narrow(0, 0, 14);
  rest.keys = at::cat({sequence.keys.narrow(0, 4, 10), sequence.keys.narrow(0, 16, 4)});
  rest.values = at::cat({sequence.values.narrow(0, 4, 10), sequence.values.narrow(0, 16, 4)});
  for (const auto& [first, count] : {std::pair{0, 4}, {14, 2}}) {
    sequence.keys.narrow(0, first, count).fill_(std::numeric_limits<float>::lowest());
    sequence.values.narrow(0, first, count).zero_();
  }
  EXPECT_LT(LargestDifference(Global(sequence, 3).narrow(0, 0, 14), Global(rest, 128)), 1e-5);
}

TEST(BlockCausalAttention, IsCausalLinearAttentionInSlicesOfAnySize) {
  for (const int64_t length : {1, 64, 65, 300}) {
    const Sequence sequence(length);
    const at::Tensor expected = CausalFormula(sequence);
    for (const int64_t slice : {1, 100, 300}) {
      EXPECT_LT(LargestDifference(Causal(sequence, slice), expected), 1e-5);
    }
  }
}

TEST(BlockCausalAttention, LeavesABucketsOwnRowsOut) {
  for (const int64_t bucket : {2, 8, 64}) {
    ASSERT_TRUE(BlockCausalAttention::Takes(bucket));
    for (const int64_t length : {1, 63, 65, 300}) {
      const Sequence sequence(length);
      const at::Tensor expected = CausalFormula(sequence, bucket);
      for (const int64_t slice : {128, 256, 384}) {
        EXPECT_LT(LargestDifference(Causal(sequence, slice, bucket), expected), 1e-5)
            << length << " rows in buckets of " << bucket;
      }
    }
  }
  for (const int64_t bucket : {3, 100, 128}) EXPECT_FALSE(BlockCausalAttention::Takes(bucket));
}

TEST(BlockCausalAttention, TakesKeysWhoseExponentialOverflows) {
  for (const int64_t bucket : {1, 32}) {
    Sequence sequence(200);
    sequence.keys.narrow(0, 120, 1).fill_(95);
    const int64_t slice = bucket == 1 ? 50 : 64;
    EXPECT_LT(LargestDifference(Causal(sequence, slice, bucket), CausalFormula(sequence, bucket)),
              1e-5);
  }
}

}  // namespace
}  // namespace linserve
