#include "attention/blocks/block_convolution.h"

#include <algorithm>

#include "attention/blocks/vectorized.h"

namespace linserve {
namespace {

// So many sums stay in registers while the kernel passes over the rows.
constexpr int64_t kLanes = 64;

// Adds the weighed rows to `width` columns of one row, at most kLanes. Of a number that is known
// the loops are unrolled.
template <int64_t kWidth>
LINSERVE_INLINE void AddWeighed(const RowBlock& rows, int64_t count, const float* weights,
                                int64_t width, float* out) {
  const int64_t columns = kWidth > 0 ? kWidth : width;
  float sums[kLanes];
#pragma omp simd
  for (int64_t j = 0; j < columns; ++j) sums[j] = out[j];
  for (int64_t i = 0; i < count; ++i) {
    const float weight = weights[i];
    const float* row = rows.data + i * rows.stride;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) sums[j] += weight * row[j];
  }
#pragma omp simd
  for (int64_t j = 0; j < columns; ++j) out[j] = sums[j];
}

}  // namespace

void AddConvolution(const RowBlock& rows, int64_t length, int64_t row, int64_t count,
                    int64_t dim_head, const RowKernel& kernel, const RowBlock& out) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t head = 0; head < kernel.heads; ++head) {
      const float* weights = kernel.weights + head * kernel.size;
      for (int64_t lane = 0; lane < dim_head; lane += kLanes) {
        const int64_t column = head * dim_head + lane;
        const int64_t width = std::min(kLanes, dim_head - lane);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t place = row + i - kernel.size / 2;  // of the kernel's first weight
          const int64_t first = std::max<int64_t>(0, place);
          const int64_t some = std::min(length, place + kernel.size) - first;
          const RowBlock seen = rows.Rows(first).Columns(column);
          const float* own = weights + (first - place);
          float* sums = out.data + i * out.stride + column;
          if (width == kLanes) {
            AddWeighed<kLanes>(seen, some, own, width, sums);
          } else {
            AddWeighed<0>(seen, some, own, width, sums);
          }
        }
      }
    }
  });
}

}  // namespace linserve
