#pragma once

#include <cstdint>

#include "models/linformer_pytorch/stack.h"
#include "models/network/network.h"

namespace linserve::linformer_pytorch {

// Describes the tensors that all models of the package take besides x: input_mask, embeddings_mask,
// and embeddings in a decoder.
class ConditionInputs {
 public:
  // With `padder` the package's Padder pads x and not the others, so that they have lengths of
  // their own.
  ConditionInputs(bool decoder, bool padder, int64_t channels, int64_t input_size)
      : decoder_(decoder), padder_(padder), channels_(channels), input_size_(input_size) {}

  // Adds them, and the longest lengths, after x [n, ...].
  void AddTo(Signature& signature) const;

  // Adds what `linserve inspect` says of them.
  void AddTo(NetworkNotes& notes) const;

  // Returns what the stack reads of a batch; a mask counts as false past its end.
  StackContext From(const TensorBatch& batch) const;

 private:
  char mask_letter() const { return padder_ ? 'p' : 'n'; }
  char embeddings_letter() const { return padder_ ? 'm' : 'n'; }
  char embeddings_mask_letter() const { return padder_ ? 'q' : 'n'; }

  bool decoder_;
  bool padder_;
  int64_t channels_;
  int64_t input_size_;
};

}  // namespace linserve::linformer_pytorch
