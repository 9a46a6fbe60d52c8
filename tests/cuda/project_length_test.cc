#include "cuda/kernels/project_length.h"

#include "attention/linformer/linformer_attention.h"
#include "cuda/kernel_fixture.h"

namespace linserve::cuda {
namespace {

template <typename T>
at::Tensor Compute(const at::Tensor& rows, const at::Tensor& projection, const PlacedLayout& layout,
                   int part_rows) {
  const auto starts = Narrowed(layout.starts);
  const auto lengths = Narrowed(layout.lengths);
  const int longest = *std::max_element(lengths.begin(), lengths.end());
  ProjectLengthSizes sizes;
  sizes.slots = static_cast<int>(projection.size(1));
  sizes.width = static_cast<int>(rows.size(1));
  sizes.part_rows = part_rows;
  sizes.parts = (longest + part_rows - 1) / part_rows;
  const auto batch = static_cast<int>(layout.sequences());
  const at::Tensor result = at::full({batch, sizes.slots, sizes.width}, NAN, rows.options());
  const at::Tensor shares =
      at::full({batch, sizes.parts, sizes.slots, sizes.width}, NAN, at::kFloat);
  const ProjectLengthArguments<T> arguments{
      DataOf<T>(rows),      rows.stride(0),        DataOf<T>(projection),
      projection.stride(0), starts.data(),         lengths.data(),
      DataOf<T>(result),    DataOf<float>(shares), sizes};
  using Kernel = ProjectLength<T>;
  const BlockIndex grid{(sizes.width + Kernel::kTileWidth - 1) / Kernel::kTileWidth,
                        (sizes.slots + Kernel::kTileSlots - 1) / Kernel::kTileSlots,
                        batch * sizes.parts};
  RunGrid<T>(grid, Kernel::kSharedBytes,
             [&](const BlockIndex& at, T* shared) { Kernel::Run(arguments, at, shared); });
  if (sizes.parts > 1) {
    for (int64_t i = 0; i < result.numel(); ++i) AddShares(arguments, i);
  }
  return result;
}

template <typename T>
class ProjectLengthKernel : public testing::Test {
 protected:
  void ExpectLikeTheReference(int64_t width, int64_t slots, const PlacedLayout& layout,
                              int part_rows = 4096) {
    // What lies between the rows of the projection is not used.
    const at::Tensor padded = at::full({600, (slots + 7) / 8 * 8}, NAN, kTypeOf<T>);
    at::Tensor projection = padded.narrow(1, 0, slots);
    projection.copy_(Random({600, slots}, kTypeOf<T>));
    const at::Tensor rows = Random({layout.rows, width}, kTypeOf<T>);
    const at::Tensor result = Compute<T>(rows, projection, layout, part_rows);
    // The reference overwrites rows of padding.
    const at::Tensor expected =
        linserve::ProjectLength(rows.to(at::kDouble), projection.to(at::kDouble), layout);
    EXPECT_LT(Distance(result, expected), 4e-3) << width << " wide, " << slots << " slots";
  }
};
using Types = testing::Types<c10::BFloat16, c10::Half>;
TYPED_TEST_SUITE(ProjectLengthKernel, Types);

TYPED_TEST(ProjectLengthKernel, GivesTheReferencesSlotsOfPackedSequences) {
  this->ExpectLikeTheReference(64, 64, LayoutOf({1, 64, 63, 65, 200}));
}

TYPED_TEST(ProjectLengthKernel, LeavesOutTheRowsOfPadding) {
  this->ExpectLikeTheReference(64, 64, LayoutOf({3, 128, 100}, 128));
}

TYPED_TEST(ProjectLengthKernel, TakesWidthsAndSlotsThatEndWithinATile) {
  this->ExpectLikeTheReference(72, 8, LayoutOf({7, 130}));
  this->ExpectLikeTheReference(8, 136, LayoutOf({100, 5}));
  this->ExpectLikeTheReference(8, 5, LayoutOf({70}));
  this->ExpectLikeTheReference(16, 100, LayoutOf({30, 200}), 128);
}

TYPED_TEST(ProjectLengthKernel, AddsUpThePartsOfLongSequences) {
  this->ExpectLikeTheReference(64, 72, LayoutOf({600, 1, 128, 129, 256}), 128);
}

}  // namespace
}  // namespace linserve::cuda
