#include "models/network/layers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/products/bf16_product.h"
#include "attention/products/block_math.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"

namespace linserve {
namespace {

const float* DataOrNull(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

// Gives x as rows [rows, width], each contiguous.
at::Tensor AsRows(const at::Tensor& x, int64_t width) {
  const at::Tensor rows = x.reshape({-1, width});
  return rows.stride(1) == 1 ? rows : rows.contiguous();
}

}  // namespace

void Linear::DeclareUnpacked(const Scope& scope) {
  scope.Declare("weight", weight, {outputs, inputs}, Init::kUniform);
  if (with_bias) scope.Declare("bias", bias, {outputs}, Init::kZeros);
}

void Linear::Declare(const Scope& scope, bool exact) {
  DeclareUnpacked(scope);
  scope.Packs(weight);
  scope.AfterLoading([this, exact](DType products) { Pack(exact ? DType::kF32 : products); });
}

void Linear::DeclareLogits(const Scope& scope) {
  DeclareUnpacked(scope);
  if (!HasBf16Kernels()) return;
  scope.Rounds(weight);
  scope.AfterLoading([this](DType products) {
    if (products != DType::kF32) Pack(DType::kBF16);
  });
}

void Linear::DeclarePart(const Scope& scope) {
  DeclareUnpacked(scope);
  scope.Packs(weight);
}

void Linear::Pack(DType products) {
  if (packed) return;  // declared twice: shared by two modules
  if (factor != 1) {
    weight = weight * factor;
    if (with_bias) bias = bias * factor;
    factor = 1;
  }
  packed = PackedWeight(weight, products);
  if (!packed) return;
  weight.reset();
  if (with_bias) bias = bias.contiguous();
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  at::Tensor y = packed ? MultiplyPacked(x) : at::linear(x, weight, bias);
  RowsRead(y.numel() / outputs);
  return y;
}

at::Tensor Linear::MultiplyPacked(const at::Tensor& x) const {
  const at::Tensor rows = AsRows(x, inputs);
  const at::Tensor y = at::empty({rows.size(0), outputs}, x.options());
  ForBlocks(rows.size(0), 0, [&](int64_t begin, int64_t count, float*) {
    Set(BlockOf(y, begin), BlockOf(rows, begin), count);
  });
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = outputs;
  return y.view(shape);
}

void Linear::AddTo(const at::Tensor& target, const at::Tensor& x) const {
  if (!packed) {
    target.add_((*this)(x));
    return;
  }
  const at::Tensor rows = AsRows(x, inputs);
  ForBlocks(rows.size(0), 0, [&](int64_t begin, int64_t count, float*) {
    Add(BlockOf(target, begin), BlockOf(rows, begin), count);
  });
}

void Linear::AddProduct(const at::Tensor& target, const at::Tensor& x) const {
  // (A product with a bias can add that or the target.)
  target.addmm_(x, weight.t());
  RowsRead(x.size(0));
}

void Linear::Set(const RowBlock& y, const RowBlock& x, int64_t count) const {
  packed.Multiply(x, count, y, /*add=*/false, DataOrNull(bias));
}

void Linear::Add(const RowBlock& y, const RowBlock& x, int64_t count) const {
  packed.Multiply(x, count, y, /*add=*/true, DataOrNull(bias));
}

void JoinParts(Linear& whole, const std::vector<Linear*>& parts) {
  const auto join = [&parts](at::Tensor Linear::*tensor) {
    std::vector<at::Tensor> tensors;
    for (Linear* part : parts) tensors.push_back(std::exchange(part->*tensor, at::Tensor()));
    return at::cat(tensors);
  };
  whole.weight = join(&Linear::weight);
  if (whole.with_bias) whole.bias = join(&Linear::bias);
}

at::Tensor NormedRows::Normed() const {
  const at::Tensor normed = norm != nullptr ? (*norm)(rows, lacking) : rows;
  return visible.defined() ? normed.masked_fill(visible.logical_not().unsqueeze(-1), 0) : normed;
}

RowBlock NormedRows::Block(int64_t row, int64_t count, float* scratch) const {
  if (norm == nullptr && !visible.defined()) return BlockOf(rows, row);
  const RowBlock copy{scratch, rows.size(1)};
  Copy(row, count, copy);
  return copy;
}

void NormedRows::Copy(int64_t row, int64_t count, const RowBlock& out) const {
  const RowBlock block = BlockOf(rows, row);
  const int64_t width = rows.size(1);
  if (norm != nullptr) norm->Set(out, block, count);
  const bool* there = visible.defined() ? visible.const_data_ptr<bool>() + row : nullptr;
  for (int64_t i = 0; i < count; ++i) {
    if (norm == nullptr) std::copy_n(block.Rows(i).data, width, out.Rows(i).data);
    if (there != nullptr && !there[i]) std::fill_n(out.Rows(i).data, width, 0.0F);
  }
}

LayerNorm LayerNorm::OfLength(int64_t size, double epsilon) {
  LayerNorm norm(size, epsilon, /*biased=*/false);
  norm.kind = Kind::kLength;
  return norm;
}

LayerNorm LayerNorm::OfMeanSquare(int64_t size, double epsilon, bool from_one) {
  LayerNorm norm(size, epsilon, /*biased=*/false);
  norm.kind = Kind::kMeanSquare;
  norm.from_one = from_one;
  return norm;
}

void LayerNorm::Declare(const Scope& scope) {
  if (kind == Kind::kLength) return scope.Declare("g", weight, {1}, Init::kOnes);
  scope.Declare("weight", weight, {width}, from_one ? Init::kZeros : Init::kOnes);
  if (with_bias) scope.Declare("bias", bias, {width}, Init::kZeros);
  if (from_one) scope.AfterLoading([this](DType) { weight = weight + 1; });
}

at::Tensor LayerNorm::operator()(const at::Tensor& x, const at::Tensor& lacking) const {
  if (const auto kernel = KernelsFor(x).norm; kernel != nullptr && kind == Kind::kLayer) {
    at::Tensor normed =
        kernel(x, {.weight = weight, .bias = bias, .lacking = lacking, .epsilon = eps});
    if (normed.defined()) return normed;
  }
  if (lacking.defined()) return (*this)(x + lacking);
  if (kind == Kind::kMeanSquare) return MeanSquares(x);
  if (kind == Kind::kLength) {
    const at::Tensor length = at::norm(x.to(at::kFloat), 2, {-1}, /*keepdim=*/true).clamp_min_(eps);
    return (x / length).mul_(weight).to(x.scalar_type());
  }
  return at::layer_norm(x, {width}, weight, bias, eps);
}

at::Tensor LayerNorm::MeanSquares(const at::Tensor& x) const {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) return at::rms_norm(x, {width}, weight, eps);
  const at::Tensor rows = AsRows(x, width);
  at::Tensor y = at::empty(rows.sizes(), rows.options());
  ForBlocks(rows.size(0), 0, [&](int64_t begin, int64_t count, float*) {
    Set(BlockOf(y, begin), BlockOf(rows, begin), count);
  });
  return y.view(x.sizes());
}

void LayerNorm::Set(const RowBlock& y, const RowBlock& x, int64_t count) const {
  const auto epsilon = static_cast<float>(eps);
  switch (kind) {
    case Kind::kLength:
      return SetLengths(x, count, width, *DataOrNull(weight), epsilon, y);
    case Kind::kMeanSquare:
      return SetMeanSquares(x, count, width, DataOrNull(weight), epsilon, y);
    case Kind::kLayer:
      break;
  }
  NormalizeRows(x, count, width, DataOrNull(weight), DataOrNull(bias), epsilon, y);
}

BlockStep LayerNorm::Step(const at::Tensor& rows) const {
  return {0, [this, rows](int64_t row, int64_t count, float*) {
            const RowBlock block = BlockOf(rows, row);
            Set(block, block, count);
          }};
}

void FeedForward::Declare(const Scope& scope, const char* first, const char* second) {
  w1.Declare(scope / first);
  w2.Declare(scope / second);
}

void FeedForward::DeclareGated(const Scope& gate, const Scope& inner, const Scope& outer) {
  halves_.assign(2, Linear(w1.inputs, w2.inputs, w1.with_bias));
  halves_[0].DeclarePart(gate);
  halves_[1].DeclarePart(inner);
  gate.AfterLoading([this](DType products) {
    JoinParts(w1, {&halves_[0], &halves_[1]});
    w1.Pack(products);
  });
  w2.Declare(outer);
}

at::Tensor FeedForward::operator()(const at::Tensor& x) const {
  if (packed()) {
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = w2.outputs;
    at::Tensor y = at::zeros(shape, x.options());
    AddTo(y.view({-1, w2.outputs}), AsRows(x, w1.inputs), nullptr);
    return y;
  }
  return w2(Inner(x));
}

at::Tensor FeedForward::Inner(const at::Tensor& x) const {
  // A GPU's library computes ReLU and GELU while it writes the product. Its GELU is the one by
  // tanh, at most 5e-4 from the exact one: a sixteenth of a step of BF16 at 1, and the product is
  // not rounded before its GELU then.
  const bool gelu = activation == Activation::kTanhGelu ||
                    (activation == Activation::kGelu && x.scalar_type() == at::kBFloat16);
  if (!x.is_cpu() && !gated && w1.with_bias && (gelu || activation == Activation::kRelu)) {
    at::Tensor inner = at::_addmm_activation(w1.bias, x.reshape({-1, w1.inputs}), w1.weight.t(), 1,
                                             1, /*use_gelu=*/gelu);
    RowsRead(inner.size(0));
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = w1.outputs;
    return inner.view(shape);
  }
  const at::Tensor inner = w1(x);
  at::Tensor activated = gated ? inner.narrow(-1, 0, w2.inputs) : inner;
  Activate(activation, activated);
  return gated ? activated.mul_(inner.narrow(-1, w2.inputs, w2.inputs)) : activated;
}

void FeedForward::AddWithoutBias(const at::Tensor& target, const NormedRows& x) const {
  ByRows(x.rows, [&](int64_t row, int64_t count) {
    const at::Tensor rows = x.rows.narrow(0, row, count);
    const NormedRows normed{rows, x.norm, x.lacking};
    w2.AddProduct(target.narrow(0, row, count), Inner(normed.Normed()));
  });
}

void FeedForward::AddTo(const at::Tensor& target, const at::Tensor& x,
                        const LayerNorm* norm) const {
  if (!packed()) {
    return AddByRows(target, x, [&](const at::Tensor& rows) {
      return (*this)(norm != nullptr ? (*norm)(rows) : rows);
    });
  }
  const at::Tensor rows = AsRows(x, w1.inputs);
  const BlockStep step = Step(target, rows, norm);
  ForSlicedBlocks(rows.size(0), step.scratch_elements, step.apply);
}

BlockStep FeedForward::Step(const at::Tensor& target, const at::Tensor& x,
                            const LayerNorm* norm) const {
  return {ScratchElements(), [this, target, x, norm](int64_t row, int64_t count, float* scratch) {
            Add(BlockOf(target, row), BlockOf(x, row), count, norm, scratch);
          }};
}

BlockStep FeedForward::PostNormStep(const at::Tensor& rows, const LayerNorm& before,
                                    const LayerNorm& after) const {
  return {ScratchElements(),
          [this, rows, &before, &after](int64_t row, int64_t count, float* scratch) {
            const RowBlock block = BlockOf(rows, row);
            before.Set(block, block, count);
            Add(block, block, count, nullptr, scratch);
            after.Set(block, block, count);
          }};
}

int64_t FeedForward::ScratchElements() const {
  return kBlockRows * (w1.inputs + OddLines(w1.outputs));
}

void FeedForward::Add(const RowBlock& target, const RowBlock& x, int64_t count,
                      const LayerNorm* norm, float* scratch) const {
  const RowBlock inner{scratch, OddLines(w1.outputs)};
  const RowBlock normed = {inner.Rows(kBlockRows).data, w1.inputs};
  PackedWeight::MakeRows normalize;
  if (norm != nullptr) {
    normalize = [&](int64_t row, int64_t some) { norm->Set(normed.Rows(row), x.Rows(row), some); };
  }
  const auto activate = [&](int64_t row, int64_t some) {
    const RowBlock rows = inner.Rows(row);
    BiasActivate(activation, rows, some, w2.inputs, DataOrNull(w1.bias), w2.packed.rounds());
    if (gated) Gate(rows, some, w2.inputs, DataOrNull(w1.bias));
  };
  w1.packed.Multiply(norm != nullptr ? normed : x, count, inner, /*add=*/false, nullptr, normalize);
  w2.packed.Multiply(inner, count, target, /*add=*/true, DataOrNull(w2.bias), activate);
}

void AddByRows(const at::Tensor& target, const at::Tensor& source,
               const std::function<at::Tensor(const at::Tensor&)>& function) {
  ByRows(source, [&](int64_t row, int64_t count) {
    target.narrow(0, row, count).add_(function(source.narrow(0, row, count)));
  });
}

void ByRows(const at::Tensor& source, const std::function<void(int64_t, int64_t)>& function) {
  constexpr int64_t kRowsOnHost = 4096;
  constexpr int64_t kRowsOnDevice = 65536;  // fewer launches, and products that fill a GPU
  const int64_t most = source.is_cpu() ? kRowsOnHost : kRowsOnDevice;
  for (int64_t row = 0; row < source.size(0); row += most) {
    ForSlices(std::min(most, source.size(0) - row),
              [&](int64_t begin, int64_t count) { function(row + begin, count); });
  }
}

}  // namespace linserve
