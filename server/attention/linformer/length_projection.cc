#include "attention/linformer/length_projection.h"

#include <algorithm>

#include "attention/rows/aten.h"
#include "attention/rows/product.h"
#include "attention/rows/spans.h"

namespace linserve {

void AddProjected(const at::Tensor& rows, const at::Tensor& matrices, int64_t first,
                  at::Tensor& sums) {
  const int64_t count = rows.size(0);
  const int64_t length = rows.size(1);
  const int64_t heads = sums.size(1);
  const at::Tensor part = matrices.narrow(2, first, length);
  if (matrices.size(0) == 1) {
    sums.add_(SplitHeads(Product(part.select(0, 0), rows), heads));
    return;
  }
  // One product a head takes the sequences side by side: no matrix is repeated for them.
  const int64_t width = sums.size(3);
  const at::Tensor columns = rows.unflatten(-1, {heads, width})
                                 .permute({2, 1, 0, 3})
                                 .reshape({heads, length, count * width});
  sums.add_(Product(part, columns).unflatten(-1, {count, width}).permute({2, 0, 1, 3}));
}

void AddConvolved(const at::Tensor& rows, const at::Tensor& kernels, int64_t first,
                  at::Tensor& sums) {
  const int64_t count = rows.size(0);
  const int64_t heads = sums.size(1);
  const int64_t width = sums.size(3);
  const int64_t stride = kernels.size(1) / width;
  const int64_t first_slot = first / stride;
  const int64_t slots = std::min((rows.size(1) + stride - 1) / stride, sums.size(2) - first_slot);
  if (slots <= 0) return;
  at::Tensor seen = rows.narrow(1, 0, std::min(rows.size(1), slots * stride));
  const int64_t missing = slots * stride - seen.size(1);
  if (missing > 0) seen = at::constant_pad_nd(seen, {0, 0, 0, missing});
  const at::Tensor windows = seen.unflatten(2, {heads, width})
                                 .unflatten(1, {slots, stride})
                                 .permute({3, 0, 1, 2, 4})
                                 .reshape({heads, count * slots, stride * width});
  const at::Tensor result = Product(windows, kernels.size(0) == 1 ? kernels.select(0, 0) : kernels);
  sums.narrow(2, first_slot, slots).add_(result.view({heads, count, slots, width}).transpose(0, 1));
}

}  // namespace linserve
