#pragma once

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/layouts.h"
#include "attention/rows/layout_table.h"
#include "attention/rows/placed_layout.h"
#include "cuda/grid.h"
#include "cuda/kernels/lanes.h"

namespace linserve::cuda {

// Runs kernels as the CPU does, block by block, beside their references in attention/.

// Names the type of LibTorch's that a kernel's T is.
template <typename T>
constexpr at::ScalarType kTypeOf = c10::CppTypeToScalarType<T>::value;

template <typename T>
T* DataOf(const at::Tensor& tensor) {
  return tensor.mutable_data_ptr<T>();
}

inline at::Tensor Random(at::IntArrayRef shape, at::ScalarType type) {
  return at::randn(shape).to(type);
}

inline std::vector<int32_t> Narrowed(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

// Holds the layout as a kernel reads it.
inline LayoutTable TableOf(const PlacedLayout& layout) {
  const at::Tensor numbers = at::empty({TableSize(layout)}, at::kInt);
  WriteTable(layout, numbers.mutable_data_ptr<int32_t>());
  return linserve::TableOf(layout, numbers);
}

// Calls run(block, shared) for each block of a grid. Shared memory is full of NaNs at first, and
// what lies beyond it is guarded.
template <typename T, typename Run>
void RunGrid(const BlockIndex& grid, int shared_bytes, const Run& run) {
  constexpr size_t kGuard = 64;
  const size_t elements = static_cast<size_t>(shared_bytes) / sizeof(T);
  std::vector<T> shared(elements + kGuard);
  ForGrid(grid, [&](const BlockIndex& at) {
    std::fill(shared.begin(), shared.end(), T(NAN));
    run(at, shared.data());
    for (size_t i = elements; i < shared.size(); ++i) {
      ASSERT_TRUE(std::isnan(static_cast<float>(shared[i]))) << "past the shared memory";
    }
  });
}

// Returns the difference's norm as a share of the reference's.
inline double Distance(const at::Tensor& result, const at::Tensor& reference) {
  const at::Tensor exact = reference.to(at::kDouble);
  return ((result.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

}  // namespace linserve::cuda
