#include "attention/blocks/block_efficient_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "attention/layouts.h"
#include "attention/naive_attention.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr int64_t kHeadsOfEfficient = 3;

at::Tensor EfficientHeads(const at::Tensor& rows) {
  return rows.view({rows.size(0), kHeadsOfEfficient, -1}).transpose(0, 1);
}

// Computes rows [n, heads · width], so many of them at once.
at::Tensor AttendInBlocks(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& values, int64_t rows) {
  BlockEfficientAttention attention(kHeadsOfEfficient, queries.size(1) / kHeadsOfEfficient);
  const at::Tensor out = queries.clone();
  const at::Tensor overwritten_keys = keys.clone();
  const at::Tensor overwritten_values = values.clone();
  attention.Begin();
  for (int64_t row = 0; row < queries.size(0); row += rows) {
    attention.Attend(BlockOf(out, row), BlockOf(overwritten_keys, row),
                     BlockOf(overwritten_values, row), std::min(rows, queries.size(0) - row));
  }
  return out;
}

TEST(BlockEfficientAttention, EqualsTheFormulaForKeysOfAnySizeInAnyBlocks) {
  constexpr int64_t kLength = 150;
  for (const int64_t width : {1, 5, 32}) {
    const int64_t inner = kHeadsOfEfficient * width;
    const at::Tensor queries = at::randn({kLength, inner});
    const at::Tensor values = at::randn({kLength, inner});
    const at::Tensor steps = at::arange(kLength, at::kFloat).unsqueeze(1).expand({kLength, inner});
    for (const at::Tensor& keys : {at::randn({kLength, inner}), at::randn({kLength, inner}) * 1e4,
                                   steps * 30, steps.flip(0) * 1e3}) {
      const at::Tensor expected =
          NaiveEfficient(EfficientHeads(queries), EfficientHeads(keys.contiguous()),
                         EfficientHeads(values), {.causal = true});
      for (const int64_t rows : {1, 7, 64, 150}) {
        const at::Tensor out = AttendInBlocks(queries, keys.contiguous(), values, rows);
        EXPECT_LT(LargestDifference(EfficientHeads(out), expected), 1e-5)
            << width << " wide, " << rows << " rows at once";
      }
    }
  }
}

TEST(BlockEfficientAttention, GivesZerosWhereNothingIsSeenAndSkipsWhatIsHidden) {
  constexpr int64_t kLength = 80;
  constexpr int64_t kWidth = 8;
  const at::Tensor queries = at::randn({kLength, kHeadsOfEfficient * kWidth});
  const at::Tensor keys = at::randn_like(queries);
  const at::Tensor values = at::randn_like(queries);
  const at::Tensor mask = at::rand({kLength}) < 0.5;
  mask.narrow(0, 0, 70).fill_(false);
  mask[70].fill_(true);
  const at::Tensor hidden = mask.logical_not().unsqueeze(1);
  const at::Tensor out =
      AttendInBlocks(queries, keys.masked_fill(hidden, std::numeric_limits<float>::lowest()),
                     values.masked_fill(hidden, 0), 60);
  EXPECT_TRUE(at::equal(out.narrow(0, 0, 70), at::zeros({70, out.size(1)})));
  const at::Tensor expected =
      NaiveEfficient(EfficientHeads(queries), EfficientHeads(keys), EfficientHeads(values),
                     {.mask = mask.unsqueeze(0), .causal = true});
  EXPECT_LT(LargestDifference(EfficientHeads(out).narrow(1, 70, 10), expected.narrow(1, 70, 10)),
            1e-5);
}

}  // namespace
}  // namespace linserve
