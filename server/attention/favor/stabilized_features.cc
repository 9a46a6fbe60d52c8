#include "attention/favor/stabilized_features.h"

#include <algorithm>

#include "attention/products/kernel_rows.h"
#include "attention/products/lanes.h"

namespace linserve {
namespace {

// Sets out [count] to factor · the squares of each row.
void SetSquares(const RowBlock& rows, int64_t count, int64_t width, float factor, float* out) {
  WithVectors([&](auto vector) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = factor * SumOf<decltype(vector)>(rows.Rows(i).data, width, SquareFrom());
    }
  });
}

// Shifts each row by its largest and its offset: exp(u − offset − largest) + eps.
void ExpShiftedRows(const RowBlock& rows, int64_t count, int64_t width, const float* offsets,
                    float eps) {
  WithVectors([&](auto vector) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
      const float shift = offsets[i] + LargestIn<decltype(vector)>(row, width);
      ForColumns(
          width, [&](int64_t j)
                     __attribute__((always_inline)) { row[j] = Exp(row[j] - shift) + eps; });
    }
  });
}

// Shifts each column by its offset: exp(u − offset) + eps.
void ExpShiftedColumns(const RowBlock& rows, int64_t count, int64_t width, const float* offsets,
                       float eps) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
      ForColumns(
          width, [&](int64_t j)
                     __attribute__((always_inline)) { row[j] = Exp(row[j] - offsets[j]) + eps; });
    }
  });
}

void AddEps(const RowBlock& rows, int64_t count, int64_t width, float eps) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
      ForColumns(
          width, [&](int64_t j) __attribute__((always_inline)) { row[j] += eps; });
    }
  });
}

}  // namespace

StabilizedFeatures::StabilizedFeatures(const RandomFeatures& features)
    : map_(features),
      projection_(features.projection.mul(features.scale).contiguous()),
      turned_(projection_.t().contiguous()) {}

void StabilizedFeatures::SetQueries(const RowBlock& queries, int64_t count, const RowBlock& out,
                                    float* offsets) const {
  const int64_t width = projection_.size(1);
  BlockProduct(count, features(), width, queries, BlockOf(turned_), out, /*add=*/false);
  if (is_positive()) {
    SetSquares(queries, count, width, static_cast<float>(map_.scale * map_.scale / 2), offsets);
    return ExpShiftedRows(out, count, features(), offsets, eps());
  }
  BiasActivate(map_.kernel, out, count, features(), nullptr);
  AddEps(out, count, features(), eps());
}

void StabilizedFeatures::SetDirections(const RowBlock& keys, int64_t count, const RowBlock& out,
                                       float* offsets, float* scratch) const {
  const int64_t width = projection_.size(1);
  const RowBlock turned{scratch, kTransposedStride};
  Transpose(keys, count, width, turned);
  // What columns beyond the count hold is computed and not read: so there are kernels for few
  // numbers of columns.
  BlockProduct(features(), WholeKernelRows(count), width, BlockOf(projection_), turned, out,
               /*add=*/false);
  if (!is_positive()) return;
  SetSquares(keys, count, width, static_cast<float>(map_.scale * map_.scale / 2), offsets);
}

float StabilizedFeatures::Largest(const RowBlock& directions, int64_t features, int64_t count) {
  float largest = 0;
  WithVectors([&](auto of) __attribute__((always_inline)) {
    using Vector = decltype(of);
    largest = LargestIn<Vector>(directions.data, count);
    for (int64_t i = 1; i < features; ++i) {
      largest = std::max(largest, LargestIn<Vector>(directions.Rows(i).data, count));
    }
  });
  return largest;
}

void StabilizedFeatures::SetKeys(const RowBlock& directions, int64_t count, float* offsets,
                                 float shift, float eps) const {
  if (is_positive()) {
    for (int64_t i = 0; i < count; ++i) offsets[i] += shift;
    return ExpShiftedColumns(directions, features(), count, offsets, eps);
  }
  BiasActivate(map_.kernel, directions, features(), count, nullptr);
  AddEps(directions, features(), count, eps);
}

void AddSums(const RowBlock& rows, int64_t count, int64_t width, float* sums) {
  WithVectors([&](auto vector) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      sums[i] += SumOf<decltype(vector)>(rows.Rows(i).data, width, Itself());
    }
  });
}

}  // namespace linserve
