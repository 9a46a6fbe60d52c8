#include "attention/blocks/block_local_attention.h"

#include <gtest/gtest.h>

#include "attention/layouts.h"
#include "attention/local/local_attention.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr int64_t kLocalHeads = 3;
constexpr int64_t kLocalWidth = 8;  // of a head

// Views rows [length, heads · width] as [heads, length, width].
at::Tensor Heads(const at::Tensor& rows) {
  return rows.unflatten(-1, {kLocalHeads, kLocalWidth}).transpose(0, 1);
}

struct Difference {
  double of_visible_rows;
  bool finite;
};

Difference Compare(int64_t length, int64_t window, bool causal, const at::Tensor& mask) {
  // Queries, keys and values side by side, as a layer has them.
  const at::Tensor all = at::randn({length, 3 * kLocalHeads * kLocalWidth});
  const auto part = [&](int64_t i) {
    return all.narrow(1, i * kLocalHeads * kLocalWidth, kLocalHeads * kLocalWidth);
  };
  const at::Tensor expected = at::empty({kLocalHeads, length, kLocalWidth});
  LocalAttention(Heads(part(0)), Heads(part(1)), Heads(part(2)), mask, window, causal, expected);
  const at::Tensor key_scores = BlockAttention::ScoresOfKeys(mask);
  BlockLocalAttention(
      {.heads = kLocalHeads, .dim_head = kLocalWidth, .window = window, .causal = causal})
      .Attend({.queries = BlockOf(part(0)),
               .keys = BlockOf(part(1)),
               .values = BlockOf(part(2)),
               .count = length,
               .key_scores = mask.defined() ? key_scores.const_data_ptr<float>() : nullptr});
  at::Tensor difference = (Heads(part(0)) - expected).abs().amax({0, 2});
  const bool finite = difference.isfinite().all().item<bool>();
  if (mask.defined()) difference = difference.masked_select(mask);
  return {difference.numel() == 0 ? 0 : difference.max().item<double>(), finite};
}

TEST(BlockLocalAttention, IsLocalAttentionForAnyLengthAndWindow) {
  for (const int64_t window : {1, 7, 16, 128, 150, 300}) {
    for (const int64_t length : {1, 6, 16, 127, 128, 129, 300, 450, 611}) {
      for (const bool causal : {false, true}) {
        const at::Tensor mask = at::rand({length}) > 0.3;
        EXPECT_LT(Compare(length, window, causal, {}).of_visible_rows, 1e-5)
            << length << " rows, window " << window << ", causal " << causal;
        const Difference masked = Compare(length, window, causal, mask);
        EXPECT_LT(masked.of_visible_rows, 1e-5)
            << length << " rows, window " << window << ", causal " << causal << ", with a mask";
        EXPECT_TRUE(masked.finite);
      }
    }
  }
}

}  // namespace
}  // namespace linserve
