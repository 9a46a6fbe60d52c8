#pragma once

#include <cstdint>

#include "attention/rows/placed_layout.h"
#include "models/config/params.h"
#include "models/linear_multihead_attention/attention.h"
#include "models/network/layers.h"
#include "models/network/network.h"

namespace linserve::linear_multihead_attention {

// These are DETR's transformer layers (facebookresearch/detr, models/transformer.py), with their
// attention replaced by LinearMultiheadAttention.

struct DetrOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t dim_feedforward = 2048;
  Activation activation = Activation::kRelu;
  bool normalize_before = false;
  int64_t seq_len = 512;        // rows of the source at most
  int64_t num_queries = 100;    // rows that are decoded at most
  AttentionOptions projection;  // proj_k, param_sharing and layout of all layers

  // Reads and checks all but num_queries, which only decoders take.
  static DetrOptions From(Params& params);
  void ReadNumQueries(Params& params);

  // Returns the options of attention to keys of at most this many rows.
  AttentionOptions AttentionTo(int64_t longest_keys) const;
  void AddTo(NetworkNotes& notes) const;
};

// Holds rows of a batch with what belongs to them. An undefined position is zero, an undefined mask
// false.
struct DetrRows {
  const PlacedLayout& layout;
  at::Tensor position{};      // [rows, d_model], added to queries and keys, never to values
  at::Tensor padding_mask{};  // [rows], true: this row is no key

  at::Tensor WithPosition(const at::Tensor& rows) const;
  // Views rows through their norm, or without one.
  Attention::Side Side(const at::Tensor& rows, const LayerNorm* norm = nullptr) const {
    return {{rows, norm}, layout, position, padding_mask};
  }
};

class DetrEncoderLayer {
 public:
  explicit DetrEncoderLayer(const DetrOptions& options);

  void Declare(const Scope& scope);
  double Flops(int64_t length) const;

  // Applies it to rows [rows, d_model] in place.
  void Apply(at::Tensor& src, const DetrRows& rows) const;

 private:
  void ApplyToTensors(at::Tensor& src, const DetrRows& rows) const;

  bool normalize_before_;
  Attention self_attn_;
  FeedForward feed_forward_;
  LayerNorm norm1_, norm2_;
};

class DetrDecoderLayer {
 public:
  explicit DetrDecoderLayer(const DetrOptions& options);

  void Declare(const Scope& scope);
  double Flops(int64_t queries, int64_t length) const;

  // Applies it to rows [rows, d_model] in place.
  void Apply(at::Tensor& tgt, const DetrRows& rows, const at::Tensor& memory,
             const DetrRows& memory_rows) const;

 private:
  void ApplyToTensors(at::Tensor& tgt, const DetrRows& rows, const at::Tensor& memory,
                      const DetrRows& memory_rows) const;

  bool normalize_before_;
  Attention self_attn_, multihead_attn_;
  FeedForward feed_forward_;
  LayerNorm norm1_, norm2_, norm3_;
};

}  // namespace linserve::linear_multihead_attention
