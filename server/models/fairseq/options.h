#pragma once

#include <cstdint>

#include "attention/rows/activation.h"
#include "models/config/params.h"

namespace linserve::fairseq {

// Holds what fairseq's arguments say of a linformer_roberta model, and its dictionary: vocab_size,
// its length, and padding_idx.
struct Options {
  enum class Positions : uint8_t { kNone, kLearned, kSinusoidal };

  int64_t vocabulary = 0;
  int64_t padding = 1;  // the token; positions count others only, from behind this number
  int64_t dim = 0;
  int64_t heads = 0;
  int64_t inner = 0;  // of the feed-forward
  int64_t depth = 0;
  int64_t longest = 0;  // sequence
  int64_t slots = 0;    // that its rows are compressed to
  Activation activation = Activation::kGelu;
  Positions positions = Positions::kLearned;
  bool embeddings_scaled = false;
  bool embeddings_normed = true;
  bool embeddings_mapped = false;  // by the layer that quantization noise was trained with
  bool pre_norm = false;           // norms before attention and feed-forward, and one at the end
  bool keys_and_values_share = false;  // a matrix along the length
  bool layers_share = false;           // one
  bool tied = true;                    // the head's weights are the embeddings
  bool features_only = false;          // without the head

  static Options From(Params& params);
};

}  // namespace linserve::fairseq
