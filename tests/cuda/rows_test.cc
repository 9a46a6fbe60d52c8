#include <array>
#include <cmath>

#include "attention/positions/positions.h"
#include "cuda/kernel_fixture.h"
#include "cuda/kernels/row_calls.h"

namespace linserve::cuda {
namespace {

// Names a type of rows and one of tables.
template <typename T, typename U>
struct Pair {
  using Rows = T;
  using Table = U;
};

template <typename P>
class PositionKernels : public testing::Test {
 protected:
  static constexpr at::ScalarType kRows = kTypeOf<typename P::Rows>;
  static constexpr at::ScalarType kTable = kTypeOf<typename P::Table>;
  static constexpr double kMost = kRows == at::kFloat ? 1e-6 : 5e-3;

  const PlacedLayout layout_ = LayoutOf({3, 1, 20, 20, 7});
  const at::Tensor places_ =
      at::cat({at::arange(3), at::arange(1), at::arange(20), at::arange(20), at::arange(7)})
          .to(at::kInt);
};
using Pairs = testing::Types<Pair<float, float>, Pair<c10::BFloat16, float>, Pair<c10::Half, float>,
                             Pair<c10::BFloat16, c10::BFloat16>, Pair<c10::Half, c10::Half>>;
TYPED_TEST_SUITE(PositionKernels, Pairs);

TYPED_TEST(PositionKernels, AddTheTableAtEachRowsPlace) {
  const at::Tensor table = Random({20, 24}, this->kTable);
  const at::Tensor all = Random({51, 48}, this->kRows);
  at::Tensor rows = all.narrow(1, 8, 24);  // of wider rows
  at::Tensor expected = rows.to(at::kFloat);
  AddPositions(expected, this->layout_, table.to(at::kFloat));
  const at::Tensor before = all.clone();
  ASSERT_TRUE(CallAddPositions(rows, table, this->places_, [](const auto& arguments, int64_t n) {
    for (int64_t i = 0; i < n; ++i) AddPosition(arguments, i);
  }));
  EXPECT_LT(Distance(rows, expected), this->kMost);
  EXPECT_TRUE(all.narrow(1, 0, 8).equal(before.narrow(1, 0, 8)));
  EXPECT_TRUE(all.narrow(1, 32, 16).equal(before.narrow(1, 32, 16)));
}

TYPED_TEST(PositionKernels, TurnEachHeadByItsRowsPlace) {
  for (const int64_t dim_head : {8, 24, 64}) {
    const at::Tensor table = Sinusoid(20, dim_head, 100).to(this->kTable);
    at::Tensor rows = Random({51, 3 * dim_head}, this->kRows);
    at::Tensor expected = rows.to(at::kFloat);
    Rotate(expected, this->layout_, 3, table.to(at::kFloat));
    ASSERT_TRUE(CallRotate(rows, 3, table, this->places_, [](const auto& arguments, int64_t n) {
      for (int64_t i = 0; i < n; ++i) RotatePairs(arguments, i);
    }));
    EXPECT_LT(Distance(rows, expected), this->kMost) << dim_head << " a head";
  }
}

TYPED_TEST(PositionKernels, LeaveRowsAloneThatAreNoWholeVectors) {
  const auto none = [](const auto&, int64_t) { FAIL(); };
  const at::Tensor rows = Random({51, 12}, this->kRows);
  EXPECT_FALSE(CallAddPositions(rows, Random({20, 12}, this->kTable), this->places_, none));
  EXPECT_FALSE(CallRotate(rows, 2, Random({20, 6}, this->kTable), this->places_, none));
}

using RowTypes = testing::Types<float, c10::BFloat16, c10::Half>;

template <typename T>
class NormRowsKernel : public testing::Test {
 protected:
  static at::Tensor Norm(const at::Tensor& rows, const RowNorm& norm) {
    return CallNorm(rows, norm,
                    []<int kReads, typename Number>(const NormRowsArguments<Number>& arguments,
                                                    const BlockIndex& grid) {
                      ForGrid(grid, [&](const BlockIndex& at) {
                        NormRows<Number, kReads>::Run(arguments, at);
                      });
                    });
  }
};
TYPED_TEST_SUITE(NormRowsKernel, RowTypes);

TYPED_TEST(NormRowsKernel, NormsRowsOfSeveralWidthsWithWhatTheyLackAndWithout) {
  const auto exact = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(at::kDouble) : tensor;
  };
  for (const int64_t width : {8, 64, 256, 264, 768, 1024}) {
    SCOPED_TRACE(width);
    const at::Tensor all = Random({21, width + 16}, kTypeOf<TypeParam>);
    const at::Tensor rows = all.narrow(1, 8, width).add_(3);  // of wider rows
    for (const bool more : {false, true}) {
      const RowNorm norm{.weight = Random({width}, kTypeOf<TypeParam>),
                         .bias = more ? Random({width}, kTypeOf<TypeParam>) : at::Tensor(),
                         .lacking = more ? Random({width}, kTypeOf<TypeParam>) : at::Tensor(),
                         .epsilon = 1e-5};
      const at::Tensor whole = more ? exact(rows) + exact(norm.lacking) : exact(rows);
      const at::Tensor expected =
          at::layer_norm(whole, {width}, exact(norm.weight), exact(norm.bias), norm.epsilon);
      const double most = kTypeOf<TypeParam> == at::kFloat ? 1e-5 : 4e-3;
      EXPECT_LT(Distance(this->Norm(rows, norm), expected), most);
    }
  }
}

TYPED_TEST(NormRowsKernel, TakesNoRowsThatAreNoWholeVectorsOrTooWide) {
  for (const int64_t width : {12, 1032}) {
    const RowNorm norm{
        .weight = Random({width}, kTypeOf<TypeParam>), .bias = {}, .lacking = {}, .epsilon = 1e-5};
    EXPECT_FALSE(this->Norm(Random({3, width}, kTypeOf<TypeParam>), norm).defined());
  }
}

template <typename T>
class PoolRowsKernel : public testing::Test {
 protected:
  at::Tensor Pool(const at::Tensor& rows, const RowsToPool& which) {
    return CallPool(
        rows, which,
        []<typename Number>(const PoolRowsArguments<Number>& arguments, const BlockIndex& grid) {
          ForGrid({grid.x, grid.y, 1}, [&](const BlockIndex& at) {
            std::vector<float> shared(PoolRows<Number>::kFloats, NAN);
            PoolRows<Number>::Run(arguments, at, shared.data());
          });
        });
  }

  static at::Tensor Numbers(const std::vector<int64_t>& values) {
    return at::tensor(values, at::kLong).to(at::kInt);
  }
};
TYPED_TEST_SUITE(PoolRowsKernel, RowTypes);

TYPED_TEST(PoolRowsKernel, MakesAVectorOfEachSequence) {
  const PlacedLayout layout = LayoutOf({1, 15, 16, 17, 300, 2, 64});
  const at::Tensor rows = Random({layout.rows, 70}, kTypeOf<TypeParam>);
  for (const bool largest : {false, true}) {
    const at::Tensor pooled = this->Pool(rows, {.starts = this->Numbers(layout.starts),
                                                .counts = this->Numbers(layout.lengths),
                                                .chosen = {},
                                                .largest = largest});
    for (size_t i = 0; i < layout.lengths.size(); ++i) {
      const at::Tensor own = rows.narrow(0, layout.starts[i], layout.lengths[i]).to(at::kDouble);
      const at::Tensor expected = largest ? own.amax(0) : own.mean(0);
      EXPECT_LT(Distance(pooled[static_cast<int64_t>(i)], expected), 1e-5) << "sequence " << i;
    }
  }
}

TYPED_TEST(PoolRowsKernel, TakesTheRowsAloneThatWereChosen) {
  const at::Tensor rows = Random({40, 33}, kTypeOf<TypeParam>);
  const at::Tensor chosen = this->Numbers({3, 7, 39, 5, 0, 1, 2});
  for (const bool largest : {false, true}) {
    const at::Tensor pooled = this->Pool(rows, {.starts = this->Numbers({0, 3}),
                                                .counts = this->Numbers({3, 4}),
                                                .chosen = chosen,
                                                .largest = largest});
    for (const auto& [vector, first, count] : {std::array{0, 0, 3}, std::array{1, 3, 4}}) {
      const at::Tensor own = rows.index_select(0, chosen.narrow(0, first, count)).to(at::kDouble);
      EXPECT_LT(Distance(pooled[vector], largest ? own.amax(0) : own.mean(0)), 1e-5);
    }
  }
}

TYPED_TEST(PoolRowsKernel, HidesNoNan) {
  at::Tensor rows = at::zeros({100, 32}, kTypeOf<TypeParam>);
  rows[57][4] = NAN;
  for (const bool largest : {false, true}) {
    const at::Tensor pooled = this->Pool(rows, {.starts = this->Numbers({0}),
                                                .counts = this->Numbers({100}),
                                                .chosen = {},
                                                .largest = largest});
    EXPECT_EQ(pooled.isnan().sum().template item<int64_t>(), 1);
    EXPECT_TRUE(pooled[0][4].isnan().template item<bool>());
  }
}

}  // namespace
}  // namespace linserve::cuda
