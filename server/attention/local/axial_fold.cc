#include "attention/local/axial_fold.h"

#include "attention/rows/aten.h"

namespace linserve {

std::vector<AxialColumns> ColumnsOf(int64_t length, int64_t width) {
  const int64_t full_rows = length / width;
  const int64_t rest = length % width;
  std::vector<AxialColumns> columns;
  if (rest > 0) columns.push_back({0, rest, full_rows + 1});
  if (full_rows > 0) columns.push_back({rest, width - rest, full_rows});
  return columns;
}

at::Tensor Fold(const at::Tensor& x, int64_t width, const AxialColumns& columns) {
  std::vector<int64_t> sizes = {x.size(0), columns.count, columns.rows};
  std::vector<int64_t> strides = {x.stride(0), x.stride(1), width * x.stride(1)};
  for (int64_t axis = 2; axis < x.dim(); ++axis) {
    sizes.push_back(x.size(axis));
    strides.push_back(x.stride(axis));
  }
  return x.as_strided(sizes, strides, x.storage_offset() + columns.first * x.stride(1));
}

}  // namespace linserve
