#pragma once

#include <cstdint>

#include "cuda/kernels/vectors.h"

namespace linserve::cuda {

// Adds tables of positions to rows, or turns rows by them, each row by its place in its sequence.
// The references are AddPositions() and Rotate() of attention/positions/positions.h.
//
// A thread has 8 neighbouring numbers of a row, which are read and written as vectors. The kernels
// are bound by memory: they read and write each row once; tables stay in the L2 cache.

template <typename T, typename U>
struct PositionArguments {
  static constexpr int kVector = 8;

  T* rows;  // rows of both begin at multiples of 16 bytes
  int64_t row_stride;
  const U* table;
  int64_t table_stride;
  const int32_t* places;  // of each row, in the table
  int vectors;            // of a row
  int dim_head;           // of Rotate(): a multiple of 8
};

// Computes vector `index` of all rows.
template <typename T, typename U>
LINSERVE_KERNEL void AddPosition(const PositionArguments<T, U>& arguments, int64_t index) {
  constexpr int kVector = PositionArguments<T, U>::kVector;
  const int64_t row = index / arguments.vectors;
  const int64_t column = index % arguments.vectors * kVector;
  T* numbers = arguments.rows + row * arguments.row_stride + column;
  auto sums = LoadVector<kVector>(numbers);
  const auto position = LoadVector<kVector>(
      arguments.table + arguments.places[row] * arguments.table_stride + column);
  LINSERVE_UNROLL
  for (int i = 0; i < kVector; ++i) {
    sums.values[i] = T(static_cast<float>(sums.values[i]) + static_cast<float>(position.values[i]));
  }
  StoreVector(numbers, sums);
}

// Turns vector `index` of all rows, which is 4 pairs of a head.
template <typename T, typename U>
LINSERVE_KERNEL void RotatePairs(const PositionArguments<T, U>& arguments, int64_t index) {
  constexpr int kVector = PositionArguments<T, U>::kVector;
  constexpr int kPairs = kVector / 2;
  const int64_t row = index / arguments.vectors;
  const int64_t column = index % arguments.vectors * kVector;
  const int64_t pair = column % arguments.dim_head / 2;
  const U* angles = arguments.table + arguments.places[row] * arguments.table_stride + pair;
  const auto sines = LoadVector<kPairs>(angles);
  const auto cosines = LoadVector<kPairs>(angles + arguments.dim_head / 2);
  T* numbers = arguments.rows + row * arguments.row_stride + column;
  auto turned = LoadVector<kVector>(numbers);
  LINSERVE_UNROLL
  for (int i = 0; i < kPairs; ++i) {
    const auto first = static_cast<float>(turned.values[2 * i]);
    const auto second = static_cast<float>(turned.values[2 * i + 1]);
    const auto sine = static_cast<float>(sines.values[i]);
    const auto cosine = static_cast<float>(cosines.values[i]);
    turned.values[2 * i] = T(first * cosine - second * sine);
    turned.values[2 * i + 1] = T(second * cosine + first * sine);
  }
  StoreVector(numbers, turned);
}

}  // namespace linserve::cuda
