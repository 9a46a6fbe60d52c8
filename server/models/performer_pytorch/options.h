#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/rows/activation.h"
#include "models/config/params.h"
#include "models/network/network.h"
#include "models/tokens/token_positions.h"

namespace linserve::performer_pytorch {

// Says what absent arguments mean, where the two classes differ.
struct Defaults {
  std::optional<int64_t> dim_head;  // nullopt: it must be given
  bool qkv_bias = true;
  bool attn_out_bias = true;
};

// Holds the constructor arguments of performer_pytorch.Performer 1.1.4, under the package's own
// names.
struct Options {
  // Says what becomes of queries and keys before they are multiplied.
  enum class Kernel : uint8_t {
    kSoftmax,      // random features whose products approximate softmax's weights
    kGeneralized,  // a function of random projections
    kSoftmaxed,    // no_projection: queries and keys are softmaxed themselves
  };
  enum class Norm : uint8_t { kLayer, kScale, kReZero };

  int64_t dim = 0;
  int64_t depth = 0;
  int64_t heads = 0;
  int64_t dim_head = 0;
  std::vector<int64_t> local_attn_heads;  // of each layer
  int64_t local_window_size = 256;
  bool causal = false;
  int64_t ff_mult = 4;
  int64_t nb_features = 0;
  bool reversible = false;
  Kernel kernel = Kernel::kSoftmax;
  Activation kernel_fn = Activation::kRelu;  // of kGeneralized
  Norm norm = Norm::kLayer;
  bool ff_glu = false;
  bool cross_attend = false;
  bool qkv_bias = true;
  bool attn_out_bias = true;
  bool shift_tokens = false;
  bool heads_share_shift = false;  // keys are shifted by the largest of all heads: scBERT's code

  // Throws ConfigError for arguments that the package cannot build.
  static Options From(Params& params, const Defaults& defaults = {});

  bool has_local_heads() const;
  // Returns how far groups of features are shifted (attention/local/token_shift.h).
  std::vector<int64_t> shifts() const;
  // Says why there are no sessions; empty if there are.
  std::string SessionRefusal() const;
  // Returns facts and warnings for `linserve inspect`.
  NetworkNotes Notes() const;
};

// Holds the constructor arguments of performer_pytorch.PerformerLM, and the arguments of its call.
// With g2v_position_emb it is the class of that name in TencentAILabHealthcare/scBERT (262fd4b).
struct LanguageModelOptions {
  Options stack;
  int64_t num_tokens = 0;
  int64_t max_seq_len = 0;
  PositionOptions::Kind positions = PositionOptions::Kind::kRotary;
  std::vector<int64_t> axial_shape;
  bool tie_embed = false;
  bool return_encodings = false;

  static LanguageModelOptions From(Params& params);

  // Returns the rows that its tables of positions have.
  int64_t LongestInput() const;
};

}  // namespace linserve::performer_pytorch
