#include "models/linear_multihead_attention/attention.h"

#include <utility>

#include "attention/linformer/linformer_attention.h"
#include "attention/linformer/projected_slots.h"
#include "attention/rows/aten.h"

namespace linserve::linear_multihead_attention {

AttentionOptions AttentionOptions::From(Params& params) {
  AttentionOptions options;
  options.embed_dim = params.Positive("embed_dim");
  options.num_heads = params.Positive("num_heads");
  if (options.embed_dim % options.num_heads != 0) {
    params.Fail("embed_dim", "a multiple of num_heads = " + std::to_string(options.num_heads));
  }
  options.kdim = params.Positive("kdim", options.embed_dim);
  options.vdim = params.Positive("vdim", options.embed_dim);
  options.seq_len = params.Positive("seq_len", options.seq_len);
  options.bias = params.Flag("bias", true);
  options.add_bias_kv = params.Flag("add_bias_kv", false);
  options.add_zero_attn = params.Flag("add_zero_attn", false);
  if (options.longest() < 1) params.Fail("seq_len", "at least 2 with add_bias_kv, which takes one");
  options.ReadProjection(params, "package");
  params.Ignore("dropout");
  return options;
}

void AttentionOptions::ReadProjection(Params& params, const std::string& default_layout) {
  proj_k = params.Positive("proj_k", proj_k);
  param_sharing = params.Text("param_sharing", param_sharing);
  package_layout =
      params.Choice("projection_layout", default_layout, {"package", "corrected"}) == "package";
}

LengthLimit AttentionOptions::Limit(char letter) const {
  return {letter, longest(), "", package_layout ? longest() : 1};
}

void AttentionOptions::AddTo(NetworkNotes& notes) const {
  const bool layerwise = param_sharing == "layerwise";
  notes.facts.emplace_back("projection", std::to_string(seq_len) + " to " + std::to_string(proj_k) +
                                             " rows, " + (layerwise ? "E is F" : "E and F"));
  notes.facts.emplace_back("layout", package_layout ? "package" : "corrected");
  if (package_layout) {
    notes.warnings.emplace_back(
        "projection_layout is \"package\": as in the package, the sequences of a request change "
        "each other's results, so that requests are not batched together; train with "
        "\"corrected\" to serve sequences that are independent");
  }
  if (!layerwise && param_sharing != "none" && param_sharing != "headwise") {
    notes.warnings.push_back("param_sharing \"" + param_sharing +
                             "\" acts as \"none\", as in the package");
  }
}

Attention::Attention(const AttentionOptions& options)
    : options_(options),
      one_in_proj_(options.kdim == options.embed_dim && options.vdim == options.embed_dim),
      query_(options.embed_dim, options.embed_dim, options.bias),
      key_(options.kdim, options.embed_dim, options.bias),
      value_(options.vdim, options.embed_dim, options.bias),
      out_proj_(options.embed_dim, options.embed_dim, options.bias) {}

void Attention::Declare(const Scope& scope, bool by_blocks) {
  const int64_t width = options_.embed_dim;
  const int64_t slots = options_.proj_k;
  if (one_in_proj_) {
    scope.Declare("in_proj_weight", in_proj_weight_, {3 * width, width}, Init::kUniform);
    scope.Packs(in_proj_weight_);
  } else {
    const auto declare = [&](const char* name, Linear& layer) {
      scope.Declare(name, layer.weight, {width, layer.inputs}, Init::kUniform);
      scope.Packs(layer.weight);
    };
    declare("q_proj_weight", query_);
    declare("k_proj_weight", key_);
    declare("v_proj_weight", value_);
  }
  if (options_.bias) scope.Declare("in_proj_bias", in_proj_bias_, {3 * width}, Init::kZeros);
  // One E and one F serve all heads, which is what the paper calls headwise sharing.
  at::Tensor& f_slot = options_.param_sharing == "layerwise" ? e_proj_weight_ : f_proj_weight_;
  scope.Declare("e_proj_weight", e_proj_weight_, {slots, options_.seq_len}, Init::kNormal);
  scope.Declare("f_proj_weight", f_slot, {slots, options_.seq_len}, Init::kNormal);
  scope.Declare("bias_e", bias_e_, {1, 1, slots}, Init::kNormal);
  scope.Declare("bias_f", bias_f_, {1, 1, slots}, Init::kNormal);
  if (options_.add_bias_kv) {
    scope.Declare("bias_k", bias_k_, {1, 1, width}, Init::kNormal);
    scope.Declare("bias_v", bias_v_, {1, 1, width}, Init::kNormal);
  }
  out_proj_.Declare(scope / "out_proj");
  scope.AfterLoading([this, by_blocks](DType products) {
    ShareOut();
    for (Linear* layer : {&query_, &key_, &value_}) layer->Pack(products);
    PrepareProjections(products, by_blocks && query_.packed && TakesBlocks());
  });
}

bool Attention::TakesBlocks() const {
  return !options_.package_layout && !options_.add_bias_kv && !options_.add_zero_attn &&
         options_.kdim == options_.embed_dim && options_.vdim == options_.embed_dim;
}

void Attention::PrepareProjections(DType products, bool by_blocks) {
  if (by_blocks) {
    const auto lay_out = [&](const at::Tensor& projection, const at::Tensor& bias) {
      return LengthWeights(projection.unsqueeze(0), bias.view({1, -1}), products);
    };
    e_blocks_ = lay_out(e_proj_weight_, bias_e_);
    f_blocks_ = f_proj_weight_.defined() ? lay_out(f_proj_weight_, bias_f_)
                                         : e_blocks_.WithBias(bias_f_.view({1, -1}));
  }
  for (at::Tensor* projection : {&e_proj_weight_, &f_proj_weight_}) {
    if (by_blocks) projection->reset();
    if (projection->defined()) *projection = WithAlignedRows(projection->t().contiguous());
  }
}

void Attention::ShareOut() {
  const int64_t width = options_.embed_dim;
  int64_t row = 0;
  for (Linear* layer : {&query_, &key_, &value_}) {
    if (one_in_proj_) layer->weight = in_proj_weight_.narrow(0, row, width);
    if (options_.bias) layer->bias = in_proj_bias_.narrow(0, row, width);
    row += width;
  }
  in_proj_weight_.reset();
  in_proj_bias_.reset();
}

at::Tensor Attention::ToSlots(at::Tensor& rows, const Inputs& inputs, const at::Tensor& projection,
                              const at::Tensor& bias, const at::Tensor& last_row) const {
  // The package accepts a key_padding_mask and ignores it.
  if (inputs.key_padding_mask.defined() && !options_.package_layout) {
    rows.masked_fill_(inputs.key_padding_mask.unsqueeze(-1), 0);
  }
  at::Tensor slots = ProjectLength(rows, projection, inputs.key_layout);
  if (options_.add_bias_kv) AddLastRow(slots, last_row.view({-1}), projection, inputs.key_layout);
  slots.add_(bias.view({1, -1, 1}));
  if (options_.package_layout) slots = RereadSlots(slots);
  return options_.add_zero_attn ? AppendZeroSlot(slots) : slots;
}

Attention::Projected Attention::Project(const Inputs& inputs) const {
  at::Tensor keys = key_(inputs.key);
  at::Tensor values = value_(inputs.value);
  const at::Tensor& f = options_.param_sharing == "layerwise" ? e_proj_weight_ : f_proj_weight_;
  Projected projected;
  projected.queries = query_(inputs.query);
  projected.keys = ToSlots(keys, inputs, e_proj_weight_, bias_e_, bias_k_);
  projected.values = ToSlots(values, inputs, f, bias_f_, bias_v_);
  projected.mask = inputs.attn_mask;
  // torch.nn.MultiheadAttention does the same; the package fails here.
  if (projected.mask.defined() && options_.add_zero_attn) {
    projected.mask = AppendOpenSlot(projected.mask);
  }
  return projected;
}

at::Tensor Attention::Attend(const Projected& projected, const PlacedLayout& layout) const {
  return out_proj_(AttendToSlots(projected.queries, projected.keys, projected.values,
                                 options_.num_heads, layout, projected.mask));
}

at::Tensor Attention::Weights(const Projected& projected, const PlacedLayout& layout) const {
  return SlotWeights(projected.queries, projected.keys, options_.num_heads, layout, projected.mask);
}

double Attention::Flops(int64_t queries, int64_t keys) const {
  const int64_t width = options_.embed_dim;
  const int64_t per_query = 4 * width * width + 4 * options_.slots() * width;
  const int64_t per_key = 2 * width * (options_.kdim + options_.vdim) + 4 * options_.proj_k * width;
  return static_cast<double>(per_query) * static_cast<double>(queries) +
         static_cast<double>(per_key) * static_cast<double>(keys);
}

}  // namespace linserve::linear_multihead_attention
