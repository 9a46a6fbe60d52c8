#include "cuda/kernels/attend_to_slots.h"

#include "attention/linformer/linformer_attention.h"
#include "cuda/kernel_fixture.h"
#include "cuda/kernels/kernel_calls.h"

namespace linserve::cuda {
namespace {

at::Tensor Compute(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                   int64_t heads, const PlacedLayout& layout, int64_t multiprocessors) {
  const auto run = []<int D, typename T>(const AttendToSlotsArguments<T>& arguments,
                                         const BlockIndex& grid) {
    using Kernel = AttendToSlots<T, D>;
    RunGrid<T>(grid, Kernel::kSharedBytes,
               [&](const BlockIndex& at, T* shared) { Kernel::Run(arguments, at, shared); });
  };
  return CallAttendToSlots(queries, keys, values, heads, TableOf(layout), multiprocessors, run);
}

struct SlotsCase {
  int64_t heads = 2;
  int64_t kv_heads = 2;
  int64_t slots = 64;
  double scale = 1;             // of the queries
  int64_t multiprocessors = 1;  // one has several tiles to do
};

template <typename T>
class AttendToSlotsKernel : public testing::Test {
 protected:
  template <int D>
  void ExpectLikeTheReference(const SlotsCase& sizes, const PlacedLayout& layout) {
    const at::Tensor queries =
        Random({layout.rows, sizes.heads * D}, at::kFloat).mul_(sizes.scale).to(kTypeOf<T>);
    const at::Tensor keys =
        Random({layout.sequences(), sizes.slots, sizes.kv_heads * D}, kTypeOf<T>);
    const at::Tensor values = Random(keys.sizes(), kTypeOf<T>);
    const at::Tensor result =
        Compute(queries, keys, values, sizes.heads, layout, sizes.multiprocessors);
    ASSERT_TRUE(result.defined());
    at::Tensor expected = linserve::AttendToSlots(queries.to(at::kDouble), keys.to(at::kDouble),
                                                  values.to(at::kDouble), sizes.heads, layout);
    // The reference may hold anything in rows of padding; the kernel leaves them as they were.
    for (size_t i = 0; i < layout.lengths.size(); ++i) {
      const int64_t start = layout.starts[i];
      const int64_t end = i + 1 < layout.starts.size() ? layout.starts[i + 1] : layout.rows;
      const int64_t length = layout.lengths[i];
      const at::Tensor of_kernel = result.narrow(0, start, length);
      EXPECT_LT(Distance(of_kernel, expected.narrow(0, start, length)), 5e-3)
          << D << " a head, " << sizes.slots << " slots, sequence " << i;
      const at::Tensor padding = result.narrow(0, start + length, end - start - length);
      EXPECT_EQ(padding.to(at::kFloat).abs().sum().template item<float>(), 0);
    }
  }
};
using Types = testing::Types<c10::BFloat16, c10::Half>;
TYPED_TEST_SUITE(AttendToSlotsKernel, Types);

TYPED_TEST(AttendToSlotsKernel, GivesTheReferencesRowsOfPackedSequences) {
  this->template ExpectLikeTheReference<64>({}, LayoutOf({1, 64, 63, 65, 130}));
}

TYPED_TEST(AttendToSlotsKernel, GivesThemOfPaddedSequencesAndLeavesThePaddingAlone) {
  this->template ExpectLikeTheReference<32>({}, LayoutOf({3, 80, 50}, 80));
}

TYPED_TEST(AttendToSlotsKernel, TakesHeadsOfEverySize) {
  this->template ExpectLikeTheReference<32>({.heads = 3, .kv_heads = 3}, LayoutOf({70}));
  this->template ExpectLikeTheReference<96>({}, LayoutOf({20, 3}));
  this->template ExpectLikeTheReference<128>({}, LayoutOf({33}));
}

TYPED_TEST(AttendToSlotsKernel, TakesHeadsThatFillNoTile) {
  this->template ExpectLikeTheReference<8>({.heads = 3, .kv_heads = 3}, LayoutOf({70}));
  this->template ExpectLikeTheReference<48>({}, LayoutOf({20, 3}));
  this->template ExpectLikeTheReference<72>({.heads = 2, .kv_heads = 1}, LayoutOf({9}));
  this->template ExpectLikeTheReference<120>({}, LayoutOf({33}));
}

TYPED_TEST(AttendToSlotsKernel, TakesAnyNumberOfSlots) {
  for (const int64_t slots : {1, 8, 63, 100, 129, 256}) {
    this->template ExpectLikeTheReference<32>({.slots = slots}, LayoutOf({5, 17}));
  }
}

TYPED_TEST(AttendToSlotsKernel, SharesItsTilesOutToAnyNumberOfMultiprocessors) {
  for (const int64_t multiprocessors : {1, 2, 3, 100}) {
    for (const int64_t slots : {60, 128, 200}) {
      this->template ExpectLikeTheReference<64>(
          {.heads = 3, .kv_heads = 3, .slots = slots, .multiprocessors = multiprocessors},
          LayoutOf({140, 7, 128, 1}));
    }
  }
}

TYPED_TEST(AttendToSlotsKernel, LetsOneHeadOfKeysServeAll) {
  this->template ExpectLikeTheReference<32>({.heads = 4, .kv_heads = 1}, LayoutOf({5, 64}));
}

TYPED_TEST(AttendToSlotsKernel, StaysFiniteWhereScoresAreLarge) {
  this->template ExpectLikeTheReference<32>({.slots = 200, .scale = 100}, LayoutOf({40}));
}

}  // namespace
}  // namespace linserve::cuda
