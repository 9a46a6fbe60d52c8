#include "models/linear_multihead_attention/detr_reference.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

at::Tensor Plus(const at::Tensor& x, const at::Tensor& position) {
  return position.defined() ? x + position : x;
}

}  // namespace

at::Tensor Input(const Item& item, const std::string& name) {
  const auto input = item.inputs.find(name);
  if (input == item.inputs.end()) return {};
  const at::Tensor tensor = ToAten(input->second);
  return tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor;
}

DetrReference::DetrReference(const TensorMap& weights, std::string prefix, Options options)
    : prefix_(std::move(prefix)), options_(options) {
  for (const auto& [name, tensor] : weights) weights_[name] = ToAten(tensor).to(at::kDouble);
}

at::Tensor DetrReference::Norm(const std::string& name, const at::Tensor& x) const {
  const at::Tensor centred = x - x.mean(-1, /*keepdim=*/true);
  const at::Tensor variance = (centred * centred).mean(-1, /*keepdim=*/true);
  return centred / (variance + 1e-5).sqrt() * Weight(name + ".weight") + Weight(name + ".bias");
}

at::Tensor DetrReference::Linear(const std::string& name, const at::Tensor& x) const {
  return at::matmul(x, Weight(name + ".weight").t()) + Weight(name + ".bias");
}

at::Tensor DetrReference::FeedForward(const at::Tensor& x) const {
  const at::Tensor inner = Linear("linear1", x);
  const at::Tensor gelu = inner * 0.5 * (1 + at::erf(inner / std::sqrt(2.0)));
  return Linear("linear2", options_.gelu ? gelu : inner.clamp_min(0));
}

at::Tensor DetrReference::Attention(const std::string& name, const at::Tensor& query,
                                    const at::Tensor& key, const at::Tensor& value,
                                    const at::Tensor& padding) const {
  const int64_t width = query.size(1);
  const int64_t dim_head = width / options_.nhead;
  const at::Tensor& bias = Weight(name + ".in_proj_bias");
  const auto in = [&](const at::Tensor& rows, int64_t third) {
    const at::Tensor weight = Weight(name + ".in_proj_weight").narrow(0, third * width, width);
    return at::matmul(rows, weight.t()) + bias.narrow(0, third * width, width);
  };
  const auto project = [&](at::Tensor rows, const char* matrix, const char* addend) {
    if (padding.defined()) rows = rows.masked_fill(padding.unsqueeze(-1), 0);
    const at::Tensor weight = Weight(name + "." + matrix).narrow(1, 0, rows.size(0));
    return at::matmul(weight, rows) + Weight(name + "." + addend).view({-1, 1});
  };
  const at::Tensor q = in(query, 0) / std::sqrt(static_cast<double>(dim_head));
  const at::Tensor k = project(in(key, 1), "e_proj_weight", "bias_e");
  // With layerwise sharing E is F.
  const bool shared = !weights_.contains(prefix_ + name + ".f_proj_weight");
  const at::Tensor v = project(in(value, 2), shared ? "e_proj_weight" : "f_proj_weight", "bias_f");
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < options_.nhead; ++head) {
    const auto part = [&](const at::Tensor& all) {
      return all.narrow(1, head * dim_head, dim_head);
    };
    heads.push_back(at::matmul(at::softmax(at::matmul(part(q), part(k).t()), -1), part(v)));
  }
  return Linear(name + ".out_proj", at::cat(heads, 1));
}

at::Tensor DetrReference::EncoderLayer(const at::Tensor& src, const at::Tensor& pos,
                                       const at::Tensor& padding) const {
  const auto attend = [&](const at::Tensor& x) {
    return Attention("self_attn", Plus(x, pos), Plus(x, pos), x, padding);
  };
  if (options_.normalize_before) {
    const at::Tensor x = src + attend(Norm("norm1", src));
    return x + FeedForward(Norm("norm2", x));
  }
  const at::Tensor x = Norm("norm1", src + attend(src));
  return Norm("norm2", x + FeedForward(x));
}

at::Tensor DetrReference::DecoderLayer(const at::Tensor& tgt, const at::Tensor& query_pos,
                                       const at::Tensor& tgt_padding, const at::Tensor& memory,
                                       const at::Tensor& pos, const at::Tensor& padding) const {
  const auto attend = [&](const at::Tensor& x) {
    return Attention("self_attn", Plus(x, query_pos), Plus(x, query_pos), x, tgt_padding);
  };
  const auto look = [&](const at::Tensor& x) {
    return Attention("multihead_attn", Plus(x, query_pos), Plus(memory, pos), memory, padding);
  };
  if (options_.normalize_before) {
    const at::Tensor x = tgt + attend(Norm("norm1", tgt));
    const at::Tensor y = x + look(Norm("norm2", x));
    return y + FeedForward(Norm("norm3", y));
  }
  const at::Tensor x = Norm("norm1", tgt + attend(tgt));
  const at::Tensor y = Norm("norm2", x + look(x));
  return Norm("norm3", y + FeedForward(y));
}

DetrResult DetrTransformer(const TensorMap& weights, const DetrReference::Options& options,
                           int64_t encoder_layers, int64_t decoder_layers, const Item& item) {
  const at::Tensor pos = Input(item, "pos_embed");
  const at::Tensor query_pos = Input(item, "query_embed");
  const at::Tensor mask = Input(item, "mask");
  at::Tensor memory = Input(item, "src");
  for (int64_t i = 0; i < encoder_layers; ++i) {
    const DetrReference layer(weights, "encoder.layers." + std::to_string(i) + ".", options);
    memory = layer.EncoderLayer(memory, pos, mask);
  }
  const DetrReference encoder(weights, "encoder.", options);
  if (options.normalize_before) memory = encoder.Norm("norm", memory);
  const DetrReference decoder(weights, "decoder.", options);
  at::Tensor tgt = at::zeros_like(query_pos);
  std::vector<at::Tensor> hs;
  for (int64_t i = 0; i < decoder_layers; ++i) {
    const DetrReference layer(weights, "decoder.layers." + std::to_string(i) + ".", options);
    tgt = layer.DecoderLayer(tgt, query_pos, {}, memory, pos, mask);
    hs.push_back(decoder.Norm("norm", tgt));
  }
  return {at::stack(hs), memory};
}

}  // namespace linserve
