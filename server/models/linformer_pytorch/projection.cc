#include "models/linformer_pytorch/projection.h"

#include "attention/linformer/length_projection.h"
#include "attention/rows/aten.h"

namespace linserve::linformer_pytorch {

at::Tensor HeadTensors::TakeStacked() {
  at::Tensor stacked = slots_.size() == 1 ? slots_[0].unsqueeze(0) : at::stack(slots_);
  for (at::Tensor& slot : slots_) slot = at::Tensor();
  return stacked;
}

LengthProjection::LengthProjection(const HeadOptions& options)
    : options_(options),
      weights_(options.sharing == ParameterSharing::kNone ? options.heads : 1),
      biases_(weights_.count()) {}

void LengthProjection::Declare(const Scope& attention, const std::string& name) {
  const int64_t width = options_.dim_head;
  for (int64_t head = 0; head < options_.heads; ++head) {
    const Scope heads = attention / "heads" / head;
    at::Tensor& weight = weights_.slot(head);
    at::Tensor& bias = biases_.slot(head);
    switch (options_.method) {
      case ProjectionMethod::kLearnable:
        (heads / name).Declare("weight", weight, {slots(), options_.input_size}, Init::kNormal);
        (heads / name).Declare("bias", bias, {slots()}, Init::kZeros);
        break;
      case ProjectionMethod::kConvolution:
        (heads / name).Declare("weight", weight, {width, width, options_.stride()}, Init::kUniform);
        (heads / name).Declare("bias", bias, {width}, Init::kZeros);
        break;
      case ProjectionMethod::kNoParams:
        heads.Declare(name, weight, {options_.input_size, slots()}, Init::kNarrow,
                      ParameterKind::kPlain);
        break;
    }
  }
  attention.AfterLoading([this](DType) { Prepare(); });
}

void LengthProjection::Prepare() {
  if (matrices_.defined() || packed_.defined()) return;
  const at::Tensor weights = weights_.TakeStacked();
  switch (options_.method) {
    case ProjectionMethod::kLearnable:
      matrices_ = weights;
      bias_ = biases_.TakeStacked().unsqueeze(2);
      break;
    case ProjectionMethod::kConvolution:  // [.., out, in, time] to [.., time and in, out]
      matrices_ = weights.permute({0, 3, 2, 1}).flatten(1, 2).contiguous();
      bias_ = biases_.TakeStacked().unsqueeze(1);
      break;
    case ProjectionMethod::kNoParams:
      matrices_ = weights.transpose(1, 2);
      break;
  }
}

void LengthProjection::Add(const at::Tensor& rows, int64_t first, int64_t head,
                           at::Tensor& sums) const {
  const at::Tensor own = matrices() == 1 ? matrices_ : matrices_.narrow(0, head, sums.size(1));
  if (is_convolution()) {
    AddConvolved(rows, own, first, sums);
  } else {
    AddProjected(rows, own, first, sums);
  }
}

void LengthProjection::AddBias(at::Tensor& sums) const {
  if (bias_.defined()) sums.add_(bias_);
}

void LengthProjection::Pack(DType products) {
  if (packed_.defined()) return;
  packed_ = LengthWeights(matrices_, bias_.defined() ? bias_.squeeze(2) : at::Tensor(), products);
  matrices_.reset();
}

double LengthProjection::Flops(int64_t length) const {
  const int64_t products = is_convolution() ? options_.dim_head : slots();
  return 2.0 * static_cast<double>(products * options_.inner()) * static_cast<double>(length);
}

}  // namespace linserve::linformer_pytorch
