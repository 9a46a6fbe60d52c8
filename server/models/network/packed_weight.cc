#include "models/network/packed_weight.h"

#include <algorithm>

#include "attention/blocks/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// A panel has so many columns, and so many of its rows are multiplied at once, so that both
// operands of a product fit the caches. Without kernels for blocks, one product of everything is
// fastest.
constexpr int64_t kPanelColumns = 32;
constexpr int64_t kPanelRows = 1024;

int64_t PanelColumns(int64_t outputs) { return HasBlockKernels() ? kPanelColumns : outputs; }

}  // namespace

PackedWeight::PackedWeight(const at::Tensor& weight)
    : inputs_(weight.size(1)), outputs_(weight.size(0)) {
  if (weight.scalar_type() != at::kFloat || !weight.is_cpu()) return;
  panels_ = at::empty({outputs_ * inputs_}, weight.options());
  const int64_t width = PanelColumns(outputs_);
  for (int64_t column = 0; column < outputs_; column += width) {
    const int64_t columns = std::min(width, outputs_ - column);
    panels_.narrow(0, column * inputs_, columns * inputs_)
        .view({inputs_, columns})
        .copy_(weight.narrow(0, column, columns).t());
  }
}

void PackedWeight::Multiply(const RowBlock& rows, int64_t count, const RowBlock& out,
                            bool add) const {
  auto* panels = const_cast<float*>(panels_.const_data_ptr<float>());
  const int64_t width = PanelColumns(outputs_);
  for (int64_t row = 0; row < inputs_; row += kPanelRows) {
    const int64_t depth = std::min(kPanelRows, inputs_ - row);
    for (int64_t column = 0; column < outputs_; column += width) {
      const int64_t columns = std::min(width, outputs_ - column);
      const RowBlock panel{panels + column * inputs_ + row * columns, columns};
      BlockProduct(count, columns, depth, rows.Columns(row), panel, out.Columns(column),
                   add || row > 0);
    }
  }
}

}  // namespace linserve
