#include "attention/blocks/block_convolution.h"

#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "attention/products/vectorized.h"

namespace linserve {
namespace {

// The sums of so many rows stay in registers, for this many columns, while the kernels pass over
// what they see together.
constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kLanes = 16;
constexpr int64_t kVectors = 2;
constexpr int64_t kColumns = kVectors * kLanes;
using Lanes [[gnu::vector_size(kLanes * sizeof(float))]] = float;

// Is what the kernels of neighbouring rows see together, and the first one's weight of it. The next
// row's weight of the same stands before that.
struct Seen {
  RowBlock rows;
  int64_t count;
  const float* weights;
};

template <int64_t kRows>
LINSERVE_INLINE void AddTile(const Seen& seen, const RowBlock& out) {
  std::array<std::array<Lanes, kVectors>, kRows> sums;
  for (int64_t i = 0; i < kRows; ++i) {
    std::memcpy(sums[i].data(), out.data + i * out.stride, sizeof(sums[i]));
  }
  for (int64_t j = 0; j < seen.count; ++j) {
    std::array<Lanes, kVectors> row;
    std::memcpy(row.data(), seen.rows.data + j * seen.rows.stride, sizeof(row));
    for (int64_t i = 0; i < kRows; ++i) {
      const float weight = seen.weights[j - i];
      for (int64_t vector = 0; vector < kVectors; ++vector) sums[i][vector] += weight * row[vector];
    }
  }
  for (int64_t i = 0; i < kRows; ++i) {
    std::memcpy(out.data + i * out.stride, sums[i].data(), sizeof(sums[i]));
  }
}

LINSERVE_INLINE void AddColumns(const Seen& seen, int64_t count, int64_t width,
                                const RowBlock& out) {
  for (int64_t i = 0; i < count; ++i) {
    float* sums = out.data + i * out.stride;
    for (int64_t j = 0; j < seen.count; ++j) {
      const float weight = seen.weights[j - i];
      const float* row = seen.rows.data + j * seen.rows.stride;
#pragma omp simd
      for (int64_t column = 0; column < width; ++column) sums[column] += weight * row[column];
    }
  }
}

}  // namespace

BlockConvolution::BlockConvolution(const at::Tensor& kernel)
    : heads_(kernel.size(0)),
      size_(kernel.size(2)),
      weights_(
          at::constant_pad_nd(kernel.view({heads_, size_}), {kRowsAtOnce - 1, kRowsAtOnce - 1})) {}

void BlockConvolution::Add(const RowBlock& rows, int64_t length, int64_t row, int64_t count,
                           int64_t dim_head, const RowBlock& out) const {
  const float* all = weights_.const_data_ptr<float>() + kRowsAtOnce - 1;
  const int64_t rest = dim_head % kColumns;
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t head = 0; head < heads_; ++head) {
      const float* weights = all + head * weights_.stride(0);
      for (int64_t i = 0; i < count; i += kRowsAtOnce) {
        const int64_t some = std::min(kRowsAtOnce, count - i);
        const int64_t place = row + i - size_ / 2;  // of the first row's first weight
        const int64_t first = std::max<int64_t>(0, place);
        const int64_t end = std::min(length, place + size_ + some - 1);
        const auto columns = [&](int64_t column) __attribute__((always_inline)) {
          return Seen{rows.Rows(first).Columns(column), end - first, weights + (first - place)};
        };
        int64_t column = head * dim_head;
        for (const int64_t last = column + dim_head - rest; column < last; column += kColumns) {
          const RowBlock target = out.Rows(i).Columns(column);
          if (some == kRowsAtOnce) {
            AddTile<kRowsAtOnce>(columns(column), target);
          } else {
            for (int64_t k = 0; k < some; ++k) {
              const Seen own = columns(column);
              AddTile<1>({own.rows, own.count, own.weights - k}, target.Rows(k));
            }
          }
        }
        if (rest > 0) AddColumns(columns(column), some, rest, out.Rows(i).Columns(column));
      }
    }
  });
}

void ConvolveColumns(const RowBlock& rows, int64_t before, int64_t count,
                     const ColumnKernels& kernels, const RowBlock& out) {
  const int64_t width = kernels.width;
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t t = 0; t < count; ++t) {
      float* sums = out.Rows(t).data;
      for (int64_t j = 0; j < width; ++j) {
        sums[j] = kernels.bias != nullptr ? kernels.bias[j] : 0.0F;
      }
      const int64_t seen = std::min(kernels.size, before + t + 1);
      for (int64_t i = seen - 1; i >= 0; --i) {
        const float* weights = kernels.weights + (kernels.size - 1 - i) * width;
        const float* row = rows.data + (t - i) * rows.stride;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) sums[j] += weights[j] * row[j];
      }
    }
  });
}

void MultiplyRows(const RowBlock& rows, const RowBlock& factors, int64_t count, int64_t width) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
      const float* by = factors.Rows(i).data;
      ForColumns(
          width, [&](int64_t j) __attribute__((always_inline)) { row[j] *= by[j]; });
    }
  });
}

}  // namespace linserve
