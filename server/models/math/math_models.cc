#include "models/math/math_models.h"

#include <optional>
#include <string>
#include <utility>

#include "attention/linformer/linformer_attention.h"
#include "attention/rows/aten.h"
#include "attention/rows/spans.h"
#include "models/network/attention_method.h"

namespace linserve::math {
namespace {

// Returns the type for sums that no denominator keeps small: they grow with the number of keys, and
// with them what F32 would lose.
constexpr at::ScalarType kGrowing = at::kDouble;

struct MethodOptions {
  std::optional<AttentionMethod> method;  // nullopt: linformer
  bool causal = false;

  // A causal query is a position among the keys.
  char keys() const { return causal ? 'n' : 'm'; }
};

PlacedLayout Computed(const TensorBatch& batch, char letter) {
  return ComputedLayout(batch.axes.at(letter), batch.padding);
}

at::Tensor NewResult(const TensorBatch& batch) {
  const at::Tensor& query = batch["query"];
  return NewRows(Computed(batch, 'n'), query.size(0), batch["value"].size(1), query.options());
}

at::Tensor ComputeMethod(const TensorBatch& batch, const MethodOptions& options) {
  at::Tensor result = NewResult(batch);
  const bool grows = options.method == AttentionMethod::kKernel;
  const at::ScalarType type = grows ? kGrowing : result.scalar_type();
  const auto of = [&](const char* input, const Span& span) {
    return View(batch[input], span).to(type);
  };
  const auto [queries, keys] = Spans(Computed(batch, 'n'), Computed(batch, options.keys()));
  for (size_t i = 0; i < queries.size(); ++i) {
    Visible visible{.causal = options.causal};
    if (batch.Has("mask")) visible.mask = View(batch["mask"], keys[i]);
    View(result, queries[i])
        .copy_(Attend(*options.method, of("query", queries[i]), of("key", keys[i]),
                      of("value", keys[i]), visible));
  }
  return result;
}

// Each sequence has projections of its own, of any number of slots.
at::Tensor ComputeLinformer(const TensorBatch& batch, const MethodOptions& options) {
  at::Tensor result = NewResult(batch);
  const PlacedLayout queries = Computed(batch, 'n');
  const PlacedLayout keys = Computed(batch, options.keys());
  const PlacedLayout& slots = batch.axes.at('r');
  for (size_t i = 0; i < queries.starts.size(); ++i) {
    const auto of = [&](const char* input, const PlacedLayout& layout) {
      return batch[input].narrow(0, layout.starts[i], layout.lengths[i]).to(kGrowing);
    };
    Visible visible{.causal = options.causal};
    if (batch.Has("mask")) {
      visible.mask = batch["mask"].narrow(0, keys.starts[i], keys.lengths[i]);
    }
    result.narrow(0, queries.starts[i], queries.lengths[i])
        .copy_(LinformerAttention(of("query", queries), of("key", keys), of("value", keys),
                                  of("e", slots), of("f", slots), visible));
  }
  return result;
}

class MethodPass : public Pass {
 public:
  MethodPass(TensorBatch batch, const MethodOptions& options)
      : batch_(std::move(batch)), options_(options) {}

  bool Step() override {
    result_ =
        options_.method ? ComputeMethod(batch_, options_) : ComputeLinformer(batch_, options_);
    return false;
  }

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return result_.narrow(0, begin, end - begin);
  }

 private:
  TensorBatch batch_;
  MethodOptions options_;
  at::Tensor result_;
};

class MethodNetwork : public Network {
 public:
  explicit MethodNetwork(const MethodOptions& options) : options_(options) {}

  void Declare(const Scope&) override {}

  Signature signature() const override {
    const Axis queries = Axis::Ragged('n');
    const Axis keys = Axis::Ragged(options_.keys());
    const Axis width = Axis::Ragged('d');
    const Axis value_width = Axis::Ragged('v');
    Signature signature;
    signature.inputs = {
        {.name = "query", .axes = {queries, width}},
        {.name = "key", .axes = {keys, width}},
        {.name = "value", .axes = {keys, value_width}},
        {.name = "mask", .kind = InputKind::kMask, .axes = {keys}, .optional = true}};
    if (!options_.method) {
      for (const char* name : {"e", "f"}) {
        signature.inputs.push_back(
            {.name = name, .axes = {Axis::Ragged('r'), keys}, .batch_axis = BatchAxis::kNone});
      }
    }
    signature.outputs = {
        {.name = "y", .axes = {queries, value_width}, .mask = keys == queries ? "mask" : ""}};
    return signature;
  }

  double Flops(int64_t length) const override {
    const AttentionSizes sizes{length, length, length, length, options_.causal};
    if (options_.method) return AttentionFlops(*options_.method, sizes);
    // These are keys and values, of r = n slots, and then the queries.
    const auto n = static_cast<double>(length);
    return 4 * n * n * n + AttentionFlops(AttentionMethod::kSoftmax, sizes);
  }

  SessionPlan Sessions() const override {
    return SessionPlan::Refused("the widths of its heads come with each request");
  }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override {
    return std::make_unique<MethodPass>(std::move(batch), options_);
  }

 private:
  MethodOptions options_;
};

std::unique_ptr<Network> MakeMethod(Params& params, std::optional<AttentionMethod> method) {
  return std::make_unique<MethodNetwork>(MethodOptions{method, params.Flag("causal", false)});
}

}  // namespace

std::unique_ptr<Network> MakeSoftmax(Params& params) {
  return MakeMethod(params, AttentionMethod::kSoftmax);
}

std::unique_ptr<Network> MakeEfficient(Params& params) {
  return MakeMethod(params, AttentionMethod::kEfficient);
}

std::unique_ptr<Network> MakeKernel(Params& params) {
  return MakeMethod(params, params.Flag("normalize", true) ? AttentionMethod::kKernelNormalized
                                                           : AttentionMethod::kKernel);
}

std::unique_ptr<Network> MakeTaylor(Params& params) {
  return MakeMethod(params, AttentionMethod::kTaylor);
}

std::unique_ptr<Network> MakeLinformer(Params& params) { return MakeMethod(params, std::nullopt); }

}  // namespace linserve::math
