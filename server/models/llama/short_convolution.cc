#include "models/llama/short_convolution.h"

#include <algorithm>

#include "attention/blocks/block_convolution.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve::llama {
namespace {

// Returns the place of each row in its sequence.
at::Tensor PlacesOfRows(const PlacedLayout& layout, int64_t rows) {
  if (layout.table) return layout.table->positions;
  const at::Tensor places = at::arange(rows, at::kLong);
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    places.narrow(0, layout.starts[i], layout.lengths[i]).sub_(layout.starts[i]);
  }
  return places;
}

}  // namespace

ShortConvolution::ShortConvolution(const Options& options)
    : dim_(options.dim),
      size_(options.kernel),
      biased_(options.kernel_bias),
      in_(dim_, 3 * dim_, biased_),
      out_(dim_, dim_, biased_) {}

void ShortConvolution::Declare(const Scope& scope) {
  const Scope convolution = scope / "conv";
  convolution.Declare("weight", weight_, {dim_, 1, size_}, Init::kUniform);
  if (biased_) convolution.Declare("bias", bias_, {dim_}, Init::kZeros);
  convolution.AfterLoading([this](DType) {
    kernels_ = weight_.squeeze(1).t().contiguous().to(at::kFloat);
    weight_.reset();
    if (biased_) bias_ = bias_.contiguous().to(at::kFloat);
  });
  in_.DeclarePart(scope / "in_proj");
  scope.AfterLoading([this](DType products) {
    // c stands before b, whose place is taken by what is made of both.
    const auto move = [this](at::Tensor& tensor) {
      tensor = at::cat({tensor.narrow(0, dim_, dim_), tensor.narrow(0, 0, dim_),
                        tensor.narrow(0, 2 * dim_, dim_)});
    };
    move(in_.weight);
    if (biased_) move(in_.bias);
    in_.Pack(products);
  });
  out_.Declare(scope / "out_proj");
}

double ShortConvolution::Flops(int64_t length) const {
  return static_cast<double>(length) *
         static_cast<double>(in_.Flops() + out_.Flops() + 2 * (size_ + 1) * dim_);
}

at::Tensor ShortConvolution::Convolved(const at::Tensor& rows, const PlacedLayout& layout) const {
  const at::Tensor parts = in_(rows).to(at::kFloat);
  const at::Tensor gated = parts.narrow(1, dim_, dim_) * parts.narrow(1, 2 * dim_, dim_);
  const at::Tensor places = PlacesOfRows(layout, rows.size(0)).unsqueeze(1);
  at::Tensor sums = gated * kernels_[size_ - 1];
  for (int64_t i = 1; i < std::min(size_, rows.size(0)); ++i) {
    at::Tensor before = at::constant_pad_nd(gated.narrow(0, 0, rows.size(0) - i), {0, 0, i, 0});
    sums.addcmul_(before.masked_fill_(places < i, 0), kernels_[size_ - 1 - i]);
  }
  if (biased_) sums.add_(bias_);
  return sums.mul_(parts.narrow(1, 0, dim_)).to(rows.scalar_type());
}

void ShortConvolution::Project(const RowBlock& rows, int64_t count, const RowBlock& parts) const {
  in_.Set(parts, rows, count);
  MultiplyRows(parts.Columns(2 * dim_), parts.Columns(dim_), count, dim_);
}

void ShortConvolution::Convolve(const RowBlock& parts, int64_t place, int64_t count) const {
  const ColumnKernels kernels{.weights = kernels_.const_data_ptr<float>(),
                              .bias = biased_ ? bias_.const_data_ptr<float>() : nullptr,
                              .size = size_,
                              .width = dim_};
  ConvolveColumns(parts.Columns(2 * dim_), place, count, kernels, Result(parts));
  MultiplyRows(Result(parts), parts, count, dim_);
}

}  // namespace linserve::llama
