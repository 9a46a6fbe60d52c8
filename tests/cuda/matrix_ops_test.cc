#include "cuda/kernels/matrix_ops.h"

#include <set>

#include "cuda/kernel_fixture.h"

namespace linserve::cuda {
namespace {

using testing::SizeIs;

template <int kWidth>
void ExpectNoBankConflicts() {
  using Layout = Tile<kWidth>;
  for (int row = 0; row < 64; row += 8) {
    for (int vector = 0; vector < Layout::kVectors; ++vector) {
      std::set<int> banks;  // of 16 bytes: a warp's phase reads 8 vectors from 8 of them
      for (int i = 0; i < 8; ++i)
        banks.insert(Layout::Offset(row + i, vector) / Layout::kVector % 8);
      EXPECT_THAT(banks, SizeIs(8)) << kWidth << ": row " << row << ", vector " << vector;
    }
  }
}

TEST(Tile, HasEachVectorOfEightRowsInABankOfItsOwn) {
  ExpectNoBankConflicts<32>();
  ExpectNoBankConflicts<64>();
  ExpectNoBankConflicts<96>();
  ExpectNoBankConflicts<128>();
}

TEST(Tile, HasAPlaceForEachVectorAndNoOther) {
  using Layout = Tile<96>;
  std::set<int> places;
  for (int row = 0; row < 64; ++row) {
    for (int vector = 0; vector < Layout::kVectors; ++vector) {
      places.insert(Layout::Offset(row, vector));
    }
  }
  EXPECT_THAT(places, SizeIs(64 * 96 / 8));
  EXPECT_EQ(*places.rbegin(), 64 * 96 - 8);
}

template <typename T>
class MatrixOps : public testing::Test {};
using Types = testing::Types<c10::BFloat16, c10::Half>;
TYPED_TEST_SUITE(MatrixOps, Types);

// A [16, 16] and B [16, 8] through shared memory, A as it is and B with its columns side by side.
TYPED_TEST(MatrixOps, MultiplyWhatIsLoadedFromRows) {
  const at::Tensor a = Random({16, 16}, kTypeOf<TypeParam>);
  const at::Tensor b_transposed = Random({16, 16}, kTypeOf<TypeParam>);  // 16 columns
  PerLane<const TypeParam*> rows;
  PerLane<FragmentA> left;
  PerLane<FragmentA> right;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int matrix = lane / 8;
    const auto at = static_cast<size_t>(lane);
    rows[at] = DataOf<TypeParam>(a) + (matrix % 2 * 8 + lane % 8) * 16 + matrix / 2 * 8;
  }
  LoadMatrices<false>(rows, left);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int matrix = lane / 8;
    const auto at = static_cast<size_t>(lane);
    rows[at] = DataOf<TypeParam>(b_transposed) + (matrix / 2 * 8 + lane % 8) * 16 + matrix % 2 * 8;
  }
  LoadMatrices<false>(rows, right);
  PerLane<FragmentB> b;
  PerLane<Sums> sums = {};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    b[lane] = {{right[lane].registers[0], right[lane].registers[1]}};
  }
  MultiplyAdd<TypeParam>(left, b, sums);

  const at::Tensor product = at::empty({16, 8});
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      product[SumRow(lane, i)][SumColumn(lane, i)] = sums[static_cast<size_t>(lane)].values[i];
    }
  }
  const at::Tensor expected =
      at::mm(a.to(at::kFloat), b_transposed.narrow(0, 0, 8).t().to(at::kFloat));
  EXPECT_LT(Distance(product, expected), 1e-6);
}

}  // namespace
}  // namespace linserve::cuda
