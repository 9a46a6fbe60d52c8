#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace linserve {

// Views a sequence as a grid `width` wide: position t = row · width + column. Axial attention (Ho
// et al. 2019, arXiv:1912.12180) attends within each column. A last row that is not full leaves two
// groups of columns, of different length, which equals padding it with masked places.
struct AxialColumns {
  int64_t first;
  int64_t count;
  int64_t rows;  // of each column
};

std::vector<AxialColumns> ColumnsOf(int64_t length, int64_t width);

// Returns x [sequences, length, ...] as [sequences, columns, rows, ...], a view.
at::Tensor Fold(const at::Tensor& x, int64_t width, const AxialColumns& columns);

}  // namespace linserve
