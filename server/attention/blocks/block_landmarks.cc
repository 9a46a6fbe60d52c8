#include "attention/blocks/block_landmarks.h"

#include "attention/landmarks/landmark_attention.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "attention/rows/spans.h"

namespace linserve {

BlockLandmarks::BlockLandmarks(const Sizes& sizes, const at::Tensor& rows,
                               const BlockAttention& attention, const BlockAttention::Keys& keys,
                               const BlockAttention::Scores& scores)
    : slots_(SlotsOf(sizes), /*shared=*/false) {
  const int64_t inner = sizes.heads * sizes.dim_head;
  // They are queries, too, which are read up to a multiple of the kernels' rows.
  at::Tensor means = at::empty({sizes.landmarks + kFewestKernelRows, 2 * inner}, rows.options());
  means.narrow(0, 0, sizes.landmarks)
      .copy_(SegmentMeans(rows.narrow(0, 0, keys.rows).narrow(1, 0, 2 * inner), sizes.landmarks));
  const at::Tensor attended = at::empty({sizes.landmarks, inner}, rows.options());
  ForBlocks(sizes.landmarks, attention.ScratchElements(),
            [&](int64_t begin, int64_t count, float* scratch) {
              attention.Attend(BlockOf(means, begin), begin, count, keys, scores,
                               BlockOf(attended, begin), scratch);
            });
  const auto heads = [&](const at::Tensor& all, int64_t column) {
    const at::Tensor own = all.narrow(0, 0, sizes.landmarks).narrow(1, column, inner);
    return SplitHeads(own.unsqueeze(0), sizes.heads);
  };
  const at::Tensor values =
      LandmarkValues(heads(means, 0), heads(means, inner), heads(attended, 0), sizes.by_head);
  slots_.Set(means.narrow(0, 0, sizes.landmarks).narrow(1, inner, inner),
             JoinHeads(values).squeeze(0));
}

}  // namespace linserve
