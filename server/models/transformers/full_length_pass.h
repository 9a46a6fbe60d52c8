#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "models/network/network.h"

namespace linserve::transformers {

// Says how sequences become as long as a network takes them: with so many rows, of which those
// behind the sequence's own hold this token and are hidden by attention_mask.
struct FullLength {
  int64_t rows;
  int64_t token;
};

// Computes sequences as if all were of one length, a few of them at a time: a batch of short ones
// has far fewer rows than they have then.
class FullLengthPass : public Pass {
 public:
  // Begins a pass whose only output is last_hidden_state.
  using BeginFull = std::function<std::unique_ptr<Pass>(const TensorBatch& full)>;

  // REQUIRES: no sequence is longer.
  FullLengthPass(TensorBatch batch, const FullLength& length, BeginFull begin);

  bool Step() override;
  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override;

 private:
  // Begins with the next sequences.
  void Begin();
  // Returns an input of these sequences, with `filling` behind the rows of each.
  at::Tensor Padded(const at::Tensor& input, const at::Scalar& filling) const;
  // Takes the sequences' own rows out of what was computed.
  void Take();

  TensorBatch batch_;
  PlacedLayout layout_;
  FullLength length_;
  BeginFull begin_;
  std::unique_ptr<Pass> pass_;
  int64_t first_ = 0;  // sequence of those under way
  int64_t count_ = 0;
  at::Tensor result_;  // [rows, width] as the batch's inputs are laid out
};

}  // namespace linserve::transformers
