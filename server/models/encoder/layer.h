#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "models/encoder/attention.h"
#include "models/network/projected_attention.h"

namespace linserve::encoder {

// Computes a pre-norm layer: x += attn(attn_norm(x)), x += ff(ff_norm(x)).
class Layer {
 public:
  explicit Layer(const Options& options);

  void Declare(const Scope& scope);
  void Apply(at::Tensor& rows, const Context& context) const;  // in place
  double Flops(int64_t length) const;
  std::vector<StateSlot> State() const;  // REQUIRES: not linformer

 private:
  void AddLinformer(const ProjectedAttention& attention, at::Tensor& rows,
                    const Context& context) const;

  LayerNorm attn_norm_;
  std::variant<Attention, ProjectedAttention> attn_;
  LayerNorm ff_norm_;
  FeedForward ff_;
};

}  // namespace linserve::encoder
