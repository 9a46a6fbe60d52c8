#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "models/linear_attention_transformer/attention.h"
#include "models/linear_attention_transformer/options.h"

namespace linserve::linear_attention_transformer {

// Is linear_attention_transformer.Autopadder: it pads each sequence to a multiple of rows with
// token 0 or zeros, which are masked, and cuts them off the result. What ignores the mask sees
// those rows, and on the left they move the tokens to later positions: trained models depend on it.
struct Autopadder {
  int64_t multiple = 1;
  bool left = false;
  int64_t longest = 0;  // the network takes no more rows; 0: any number

  bool pads() const { return multiple > 1; }

  // Is what it does to a sequence that comes chunk by chunk: nothing, since rows on the right
  // change none of a causal network's.
  static Autopadder OfChunks() { return {}; }
  // Says why it makes sessions impossible; empty if it does not.
  std::string SessionRefusal() const;

  // Adds what `linserve inspect` shows of it.
  void Describe(NetworkNotes& notes) const;

  // Reads what the wrapper of `params` says; without one, nothing is padded.
  static Autopadder From(Params& params, const Options& options, int64_t longest);
};

// Holds the sequences of a batch with the Autopadder's rows: each is padded by itself, whatever its
// neighbours are.
class Autopadded {
 public:
  Autopadded(const Autopadder& autopadder, const PlacedLayout& layout);

  // Returns rows as the network computes them; `rows` itself if nothing is padded.
  at::Tensor Pad(const at::Tensor& rows) const;
  // Returns the rows' layout once they are padded, and the caller's mask, which may be undefined.
  MaskedLayout Pad(const at::Tensor& mask, const at::TensorOptions& options) const;
  // Returns rows of the network as the batch is laid out.
  at::Tensor Cut(const at::Tensor& rows) const;

 private:
  PlacedLayout layout_;  // of the batch
  bool padded_;
  PlacedLayout whole_;  // of the network: padding is part of each sequence
  PlacedLayout own_;    // where the batch's sequences lie in it
};

}  // namespace linserve::linear_attention_transformer
