#include "attention/blocks/block_mapped_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "attention/layouts.h"
#include "attention/naive_attention.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr int64_t kHeadsOfMapped = 2;
constexpr int64_t kWidthOfMapped = 9;
constexpr int64_t kMappedLength = 200;

struct Mapped {
  const char* name;
  bool taylor;
  bool divided;
  decltype(&NaiveTaylor) naive;
};

class BlockMappedAttentionTest : public ::testing::TestWithParam<Mapped> {
 protected:
  static BlockMappedAttention Make() {
    const BlockFeatures map =
        GetParam().taylor ? BlockFeatures::Taylor(kWidthOfMapped) : BlockFeatures(kWidthOfMapped);
    return {map,
            {.heads = kHeadsOfMapped,
             .features = map.features(),
             .value_width = kWidthOfMapped,
             .floor = GetParam().taylor ? 1e-6 : std::numeric_limits<float>::min(),
             .divided = GetParam().divided}};
  }
  static at::Tensor ByHead(const at::Tensor& rows) {
    return rows.view({kMappedLength, kHeadsOfMapped, kWidthOfMapped}).transpose(0, 1);
  }
  // Hides keys as the class wants it.
  at::Tensor Keys() const {
    return keys_.masked_fill(mask_.logical_not().unsqueeze(1),
                             std::numeric_limits<float>::lowest());
  }
  at::Tensor Values() const { return values_.masked_fill(mask_.logical_not().unsqueeze(1), 0); }
  at::Tensor Expected(bool causal) const {
    return GetParam().naive(ByHead(queries_), ByHead(keys_), ByHead(values_),
                            {.mask = mask_.unsqueeze(0), .causal = causal});
  }

  at::Tensor queries_ = at::randn({kMappedLength, kHeadsOfMapped* kWidthOfMapped});
  at::Tensor keys_ = at::randn_like(queries_);
  at::Tensor values_ = at::randn_like(queries_);
  at::Tensor mask_ = at::rand({kMappedLength}) < 0.8;
};

TEST_P(BlockMappedAttentionTest, EqualsTheFormula) {
  BlockMappedAttention attention = Make();
  const at::Tensor out = at::empty_like(queries_);
  const at::Tensor keys = Keys();
  const at::Tensor values = Values();
  const at::Tensor scratch = at::empty({attention.ScratchElements()});
  for (int time = 0; time < 2; ++time) {  // the second sequence knows nothing of the first one
    attention.Begin();
    attention.Add(BlockOf(keys), BlockOf(values), 150);
    attention.Add(BlockOf(keys, 150), BlockOf(values, 150), kMappedLength - 150);
    attention.Finish();
    for (int64_t row = 0; row < kMappedLength; row += kBlockRows) {
      attention.Attend(BlockOf(queries_, row), std::min(kBlockRows, kMappedLength - row),
                       BlockOf(out, row), scratch.data_ptr<float>());
    }
    EXPECT_LT(LargestDifference(ByHead(out), Expected(/*causal=*/false)), 1e-4);
  }
}

TEST_P(BlockMappedAttentionTest, EqualsTheFormulaWhenCausal) {
  BlockMappedAttention attention = Make();
  const at::Tensor out = queries_.clone();
  const at::Tensor keys = Keys();
  const at::Tensor values = Values();
  attention.Begin();
  for (const auto& [row, count] : {std::pair<int64_t, int64_t>{0, 1}, {1, 149}, {150, 50}}) {
    attention.Attend(BlockOf(out, row), BlockOf(keys, row), BlockOf(values, row), count);
  }
  EXPECT_LT(LargestDifference(ByHead(out), Expected(/*causal=*/true)), 1e-4);
}

TEST(BlockMappedAttention, GivesZerosWhereTaylorsSeriesHasAllKeysOpposed) {
  constexpr int64_t kRows = 100;
  const at::Tensor queries = at::randn({kRows, 1});
  const at::Tensor keys = -(at::rand({kRows, 1}) + 0.01);
  const at::Tensor values = at::randn({kRows, 1});
  BlockMappedAttention attention(BlockFeatures::Taylor(1),
                                 {.heads = 1, .features = 2, .value_width = 1, .floor = 1e-6});
  const at::Tensor expected = at::where(queries > 0, 0, values.mean());
  const at::Tensor out = at::empty_like(queries);
  const at::Tensor scratch = at::empty({attention.ScratchElements()});
  attention.Begin();
  attention.Add(BlockOf(keys), BlockOf(values), kRows);
  attention.Finish();
  attention.Attend(BlockOf(queries), kRows, BlockOf(out), scratch.data_ptr<float>());
  EXPECT_LT(LargestDifference(out, expected), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Maps, BlockMappedAttentionTest,
                         ::testing::Values(Mapped{"Elu", false, false, NaiveKernel},
                                           Mapped{"EluDivided", false, true, NaiveKernelNormalized},
                                           Mapped{"Taylor", true, true, NaiveTaylor}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace linserve
