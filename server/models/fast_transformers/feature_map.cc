#include "models/fast_transformers/feature_map.h"

#include "attention/linear/kernel_attention.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"

namespace linserve::fast_transformers {
namespace {

// Returns the largest |scale · x|² of rows [..., rows, width]: [..., 1, 1].
at::Tensor LargestSquare(const at::Tensor& rows, double scale) {
  const at::Tensor floats = rows.to(SumType(rows));
  return floats.square().sum(-1, /*keepdim=*/true).amax(-2, /*keepdim=*/true).mul_(scale * scale);
}

}  // namespace

FeatureMap::FeatureMap(const FeatureMapOptions& options, int64_t width, bool rotary)
    : options_(options), width_(width), rotary_(rotary) {}

void FeatureMap::Declare(const Scope& scope, const std::string& name) {
  if (options_.random) {
    scope.Declare(name, directions_, {width_, options_.directions}, Init::kStandard,
                  ParameterKind::kDrawn);
  }
  scope.AfterLoading([this](DType) { Prepare(); });
}

void FeatureMap::Prepare() {
  if (!options_.random) {
    blocks_.emplace(width_);
    return;
  }
  random_ = *options_.random;
  random_.projection = (rotary_ ? ByPairs(directions_, 1) : directions_).t().contiguous();
  directions_.reset();
  if (random_.projection.is_cpu()) blocks_.emplace(random_);
}

int64_t FeatureMap::features() const {
  if (!options_.random) return width_;
  return options_.random->FeaturesOf(options_.directions);
}

FeatureForm FeatureMap::Form(const at::Tensor& queries, const at::Tensor& keys) const {
  if (!options_.random) return KernelForm(/*normalize=*/false);
  const auto features = [&](const at::Tensor& rows) -> FeatureForm::Features {
    at::Tensor shift;
    if (options_.stabilize) shift = LargestSquare(rows, random_.scale);
    return [this, shift](const at::Tensor& some) { return random_.Of(some, shift); };
  };
  FeatureForm form;
  form.queries = features(queries);
  form.keys = features(keys);
  return form;
}

}  // namespace linserve::fast_transformers
