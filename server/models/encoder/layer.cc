#include "models/encoder/layer.h"

#include "attention/rows/aten.h"

namespace linserve::encoder {

Layer::Layer(const Options& options)
    : attn_norm_(options.dim),
      attn_(options),
      ff_norm_(options.dim),
      ff_(options.dim, options.ff_mult * options.dim) {}

void Layer::Declare(const Scope& scope) {
  attn_norm_.Declare(scope / "attn_norm");
  attn_.Declare(scope / "attn");
  ff_norm_.Declare(scope / "ff_norm");
  ff_.Declare(scope / "ff");
}

void Layer::Apply(at::Tensor& rows, const Context& context) const {
  if (attn_.WorksByBlocks(context)) {
    return attn_.AddByBlocks(rows, attn_norm_, context,
                             [&](const at::Tensor& block) { ff_.AddTo(block, block, &ff_norm_); });
  }
  rows.add_(attn_(attn_norm_(rows), context));
  ff_.AddTo(rows, rows, &ff_norm_);
}

double Layer::Flops(int64_t length) const {
  return attn_.Flops(length) + static_cast<double>(ff_.Flops()) * static_cast<double>(length);
}

}  // namespace linserve::encoder
