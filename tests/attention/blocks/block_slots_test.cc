#include "attention/blocks/block_slots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

struct Projection {
  at::Tensor matrices;  // [heads or 1, slots, length]
  at::Tensor bias;      // [heads or 1, slots], or undefined

  LengthWeights packed(DType products = DType::kF32) const { return {matrices, bias, products}; }
};

// softmax(q · kᵀ / sqrt(width)) · v of one sequence, head by head, in F64: keys and values
// [heads, slots, width].
at::Tensor NaiveSlots(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                      bool causal) {
  const int64_t heads = keys.size(0);
  const at::Tensor q = queries.to(at::kDouble).view({queries.size(0), heads, -1}).transpose(0, 1);
  at::Tensor scores = at::matmul(q, keys.transpose(1, 2)) / std::sqrt(double(q.size(2)));
  if (causal) scores.masked_fill_(at::ones_like(scores, at::kBool).triu(1), -kInfinity);
  return at::matmul(at::softmax(scores, -1), values).transpose(0, 1).flatten(1);
}

at::Tensor Attend(const BlockSlots& slots, const at::Tensor& queries) {
  const at::Tensor out = at::empty_like(queries);
  ForBlocks(queries.size(0), slots.ScratchElements(),
            [&](int64_t row, int64_t count, float* scratch) {
              slots.Attend(BlockOf(queries, row), row, count, BlockOf(out, row), scratch);
            });
  return out;
}

RowSlices::Fill Copy(const at::Tensor& rows) {
  return [rows](int64_t row, int64_t count, const RowBlock& out, float*) {
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(BlockOf(rows, row + i).data, rows.size(1), out.Rows(i).data);
    }
  };
}

// Projects rows [m, heads · width] by [heads or 1, slots, ·] and the bias: [heads, slots, width].
at::Tensor Slots(const at::Tensor& rows, const Projection& projection, int64_t heads) {
  const at::Tensor split = rows.to(at::kDouble).view({rows.size(0), heads, -1}).transpose(0, 1);
  const at::Tensor part = projection.matrices.narrow(2, 0, rows.size(0)).to(at::kDouble);
  const at::Tensor sums = at::matmul(part, split);
  return projection.bias.defined() ? sums + projection.bias.unsqueeze(2) : sums;
}

// Where there are no kernels for BF16, its products are those of F32.
class BlockSlotsTypes : public ::testing::TestWithParam<DType> {
 protected:
  // Returns how far results may be from those of F64, for values of about this size.
  static double Tolerance(double size) { return GetParam() == DType::kF32 ? 1e-4 : 0.03 * size; }
};

TEST_P(BlockSlotsTypes, IsLinformerAttentionForSequencesOfAnyLength) {
  for (const int64_t slots : {20, 21}) {
    for (const bool causal : {false, true}) {
      BlockSlots attention({slots, /*heads=*/4, /*kv_heads=*/4, /*dim_head=*/8, causal}, false);
      const Projection e{at::randn({4, slots, 600}) / 10, at::randn({4, slots})};
      const Projection f{at::randn({1, slots, 600}) / 10, at::randn({1, slots})};
      for (const int64_t length : {1, 19, 130, 600}) {
        const at::Tensor rows = at::randn({length, 64});  // keys and values
        attention.ProjectKeys(length, e.packed(GetParam()), f.packed(GetParam()), 0, Copy(rows));
        const at::Tensor queries = at::randn({40, 32});
        const at::Tensor keys = Slots(rows.narrow(1, 0, 32).contiguous(), e, 4);
        const at::Tensor values = Slots(rows.narrow(1, 32, 32).contiguous(), f, 4);
        EXPECT_LT(LargestDifference(Attend(attention, queries),
                                    NaiveSlots(queries, keys, values, causal)),
                  Tolerance(values.abs().max().item<double>()))
            << length << " rows, " << slots << " slots";
      }
    }
  }
}

TEST_P(BlockSlotsTypes, OfAnOddWidthAreAttendedToInF32) {
  BlockSlots slots({20, 4, 4, /*dim_head=*/7}, false);
  const Projection e{at::randn({1, 20, 50}) / 10, {}};
  const at::Tensor rows = at::randn({50, 56});
  slots.ProjectKeys(50, e.packed(GetParam()), e.packed(GetParam()), 0, Copy(rows));
  const at::Tensor keys = Slots(rows.narrow(1, 0, 28).contiguous(), e, 4);
  const at::Tensor values = Slots(rows.narrow(1, 28, 28).contiguous(), e, 4);
  const at::Tensor queries = at::randn({9, 28});
  EXPECT_LT(LargestDifference(Attend(slots, queries), NaiveSlots(queries, keys, values, false)),
            Tolerance(values.abs().max().item<double>()));
}

INSTANTIATE_TEST_SUITE_P(Types, BlockSlotsTypes, ::testing::Values(DType::kF32, DType::kBF16));

TEST_P(BlockSlotsTypes, LargeProjectionsAreReadAsTheyAreLoaded) {
  constexpr int64_t kNone = 0;
  const at::Tensor as_linear = at::randn({1, 20, 600});
  const at::Tensor as_parameter = at::randn({600, 20}).t().unsqueeze(0);
  const at::Tensor rows = at::randn({577, 64}) / 10;
  const at::Tensor queries = at::randn({40, 32});
  const auto attend = [&](int64_t most_packed) {
    BlockSlots slots({20, 4, 4, 8}, false);
    slots.ProjectKeys(577, {as_linear, {}, GetParam(), most_packed},
                      {as_parameter, {}, GetParam(), most_packed}, 0, Copy(rows));
    return Attend(slots, queries);
  };
  EXPECT_EQ(LargestDifference(attend(kNone), attend(1 << 20)), 0);
}

TEST(BlockSlots, OneHeadOfKeysServesAllQueriesAndItsValues) {
  BlockSlots slots({20, 4, /*kv_heads=*/1, 8}, /*shared=*/true);
  const Projection e{at::randn({1, 20, 50}), {}};
  const at::Tensor rows = at::randn({50, 8});
  slots.ProjectKeys(50, e.packed(), e.packed(), 0, Copy(rows));
  const at::Tensor keys = Slots(rows, e, 1).expand({4, 20, 8});
  const at::Tensor queries = at::randn({9, 32});
  EXPECT_LT(LargestDifference(Attend(slots, queries), NaiveSlots(queries, keys, keys, false)),
            1e-4);
}

TEST(BlockSlots, ProjectsTheSourceInsteadOfKeysWithTheSameResult) {
  BlockSlots slots({20, 4, 4, 8}, false);
  const Projection e{at::randn({1, 20, 300}), at::randn({1, 20})};
  const Projection f{at::randn({1, 20, 300}), {}};
  const at::Tensor rows = at::randn({300, 24}) / 10;
  const at::Tensor to_keys = at::randn({24, 32});
  const at::Tensor to_values = at::randn({24, 32});
  const auto map = [](const at::Tensor& weight) {
    return [weight](const RowBlock& in, int64_t count, const RowBlock& out) {
      BlockProduct(count, 32, 24, in, BlockOf(weight), out, /*add=*/false);
    };
  };
  slots.ProjectSource(300, 24, e.packed(), f.packed(), Copy(rows), map(to_keys), map(to_values));
  const at::Tensor queries = at::randn({9, 32});
  const at::Tensor source = rows.to(at::kDouble);
  const at::Tensor keys = Slots(at::mm(source, to_keys.to(at::kDouble)), e, 4);
  const at::Tensor values = Slots(at::mm(source, to_values.to(at::kDouble)), f, 4);
  EXPECT_LT(LargestDifference(Attend(slots, queries), NaiveSlots(queries, keys, values, false)),
            1e-4);
}

}  // namespace
}  // namespace linserve
