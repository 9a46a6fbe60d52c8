#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "attention/blocks/block_slots.h"
#include "models/network/parameters.h"

namespace linserve {

// Is E or F of a Linformer: the matrix by which the rows of a sequence become slots, for all heads.
// A sequence shorter than it meets the first of its rows. Several attentions may share it.
class LengthMatrix {
 public:
  enum class Form : uint8_t {
    kParameter,       // NAME [length, slots]
    kLinear,          // NAME.weight [slots, length], of a torch.nn.Linear
    kLinearWithBias,  // and NAME.bias, which computes nothing: fairseq multiplies by the weight
  };

  LengthMatrix(int64_t length, int64_t slots, Form form)
      : length_(length), slots_(slots), form_(form) {}

  void Declare(const Scope& scope, const std::string& name);
  // Lays it out for products with blocks of rows, or else with rows as a tensor. It does so once,
  // however many attentions ask for it.
  void Prepare(DType products, bool by_blocks);

  int64_t slots() const { return slots_; }
  // Returns it as ProjectLength() takes it, [length, slots]. REQUIRES: not by blocks.
  const at::Tensor& matrix() const { return matrix_; }
  // REQUIRES: by blocks.
  const LengthWeights& blocks() const { return blocks_; }

 private:
  int64_t length_;
  int64_t slots_;
  Form form_;
  at::Tensor loaded_;  // until it is prepared
  at::Tensor bias_;
  at::Tensor matrix_;
  LengthWeights blocks_;
};

}  // namespace linserve
