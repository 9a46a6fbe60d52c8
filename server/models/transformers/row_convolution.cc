#include "models/transformers/row_convolution.h"

#include <algorithm>
#include <vector>

#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"
#include "models/transformers/names.h"

namespace linserve::transformers {
namespace {

// A thread computes so many blocks before others may get a turn.
constexpr int64_t kBlocksAtOnce = 4;

}  // namespace

RowConvolution::RowConvolution(const Options& options)
    : kernel_(options.convolution),
      dim_(options.dim),
      product_(options.dim * options.convolution.size, options.dim),
      norm_(options.dim, options.eps, options.norm_bias) {}

void RowConvolution::Declare(const Scope& scope) {
  const Scope convolution = scope / "conv";
  convolution.Declare("weight", weight_, {dim_, dim_ / kernel_.groups, kernel_.size},
                      Init::kUniform);
  convolution.Declare("bias", product_.bias, {dim_}, Init::kZeros);
  scope.AfterLoading([this](DType products) { Prepare(products); });
  DeclareNorm(scope / "LayerNorm", norm_);
}

void RowConvolution::Prepare(DType products) {
  const int64_t width = dim_ / kernel_.groups;
  const at::Tensor all = at::zeros({dim_, kernel_.size, dim_}, weight_.options());
  for (int64_t first = 0; first < dim_; first += width) {
    all.narrow(0, first, width)
        .narrow(2, first, width)
        .copy_(weight_.narrow(0, first, width).transpose(1, 2));
  }
  weight_.reset();
  product_.weight = all.flatten(1);
  product_.Pack(products);
}

void RowConvolution::AddTo(at::Tensor& rows, const at::Tensor& read, const Context& context) const {
  if (product_.packed) return AddByBlocks(rows, read, context);
  const at::Tensor seen = Seen(rows.size(0), context.layout).to(rows.device());
  const at::Tensor around = at::constant_pad_nd(read, {0, 0, 0, 1});  // whose last row is zeros
  ByRows(rows, [&](int64_t row, int64_t count) {
    const at::Tensor places = seen.narrow(0, row, count).flatten().remainder(around.size(0));
    at::Tensor made = product_(around.index_select(0, places).view({count, product_.inputs}));
    if (context.mask.defined()) {
      made.masked_fill_(context.mask.narrow(0, row, count).logical_not().unsqueeze(1), 0);
    }
    Activate(kernel_.activation, made);
    rows.narrow(0, row, count).add_(made);
  });
  rows = norm_(rows);
  if (context.mask.defined()) rows.masked_fill_(context.mask.logical_not().unsqueeze(1), 0);
}

at::Tensor RowConvolution::Seen(int64_t rows, const PlacedLayout& layout) const {
  at::Tensor seen = at::full({rows, kernel_.size}, -1, at::kLong);
  auto* places = seen.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < layout.lengths.size(); ++i) {
    const int64_t start = layout.starts[i];
    const int64_t end = start + layout.lengths[i];
    for (int64_t row = start; row < end; ++row) {
      for (int64_t j = 0; j < kernel_.size; ++j) {
        const int64_t place = row + j - kernel_.size / 2;
        if (place >= start && place < end) places[row * kernel_.size + j] = place;
      }
    }
  }
  return seen;
}

void RowConvolution::AddByBlocks(const at::Tensor& rows, const at::Tensor& read,
                                 const Context& context) const {
  const at::Tensor seen = Seen(rows.size(0), context.layout);
  const auto* places = seen.const_data_ptr<int64_t>();
  const bool* visible = context.mask.defined() ? context.mask.const_data_ptr<bool>() : nullptr;
  const auto add = [&](int64_t first, int64_t count, float* scratch) {
    const RowBlock around{scratch, product_.inputs};
    const RowBlock made{around.Rows(kBlockRows + kFewestKernelRows).data, dim_};
    const RowBlock out = BlockOf(rows, first);
    for (int64_t i = 0; i < count * kernel_.size; ++i) {
      const int64_t place = places[first * kernel_.size + i];
      float* target = around.data + i * dim_;
      if (place < 0) {
        std::fill_n(target, dim_, 0.0F);
      } else {
        std::copy_n(BlockOf(read, place).data, dim_, target);
      }
    }
    product_.Set(made, around, count);
    const auto hide = [&](const RowBlock& block) {
      for (int64_t i = 0; visible != nullptr && i < count; ++i) {
        if (!visible[first + i]) std::fill_n(block.Rows(i).data, dim_, 0.0F);
      }
    };
    hide(made);
    BiasActivate(kernel_.activation, made, count, dim_, nullptr);
    for (int64_t i = 0; i < count; ++i) AddBias(out.Rows(i), 1, dim_, made.Rows(i).data);
    norm_.Set(out, out, count);
    hide(out);
  };
  const int64_t scratch = (kBlockRows + kFewestKernelRows) * (product_.inputs + dim_);
  const int64_t most = kBlocksAtOnce * BlockThreads() * kBlockRows;
  for (int64_t first = 0; first < rows.size(0); first += most) {
    const int64_t some = std::min(most, rows.size(0) - first);
    ForBlocks(some, scratch, [&](int64_t begin, int64_t count, float* memory) {
      add(first + begin, count, memory);
    });
    RowsRead(some);
  }
}

}  // namespace linserve::transformers
