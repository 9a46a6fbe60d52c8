#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/sequence/item.h"

namespace linserve {

// Restates Linear-DETR in float64 from DETR's models/transformer.py, one sequence at a time and
// without any of the product's mathematics: models/linear_multihead_attention/linear_detr.cc is
// compared with it.
class DetrReference {
 public:
  struct Options {
    int64_t nhead = 1;
    bool gelu = false;
    bool normalize_before = false;
  };

  // Takes the `prefix` of the tensors that this part of the network has, such as
  // "encoder.layers.0.".
  DetrReference(const TensorMap& weights, std::string prefix, Options options);

  // Positions and masks that are undefined count as none.
  at::Tensor EncoderLayer(const at::Tensor& src, const at::Tensor& pos,
                          const at::Tensor& padding) const;
  at::Tensor DecoderLayer(const at::Tensor& tgt, const at::Tensor& query_pos,
                          const at::Tensor& tgt_padding, const at::Tensor& memory,
                          const at::Tensor& pos, const at::Tensor& padding) const;
  at::Tensor Norm(const std::string& name, const at::Tensor& x) const;

 private:
  const at::Tensor& Weight(const std::string& name) const { return weights_.at(prefix_ + name); }
  at::Tensor Linear(const std::string& name, const at::Tensor& x) const;
  at::Tensor FeedForward(const at::Tensor& x) const;
  // Computes LinearMultiheadAttention with projection_layout "corrected".
  at::Tensor Attention(const std::string& name, const at::Tensor& query, const at::Tensor& key,
                       const at::Tensor& value, const at::Tensor& padding) const;

  std::map<std::string, at::Tensor> weights_;
  std::string prefix_;
  Options options_;
};

// Holds the result of the whole: hs [layers, q, d_model], each through decoder.norm, and memory [n,
// d_model].
struct DetrResult {
  at::Tensor hs;
  at::Tensor memory;
};
DetrResult DetrTransformer(const TensorMap& weights, const DetrReference::Options& options,
                           int64_t encoder_layers, int64_t decoder_layers, const Item& item);

// Returns an input of the item in float64 (masks as they are); undefined if there is none.
at::Tensor Input(const Item& item, const std::string& name);

}  // namespace linserve
