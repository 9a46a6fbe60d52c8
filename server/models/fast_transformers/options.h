#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attention/linear/random_features.h"
#include "attention/rows/activation.h"
#include "models/config/params.h"

namespace linserve::fast_transformers {

// Says what makes features of queries and keys.
struct FeatureMapOptions {
  std::optional<RandomFeatures> random{};  // without its directions; nullopt: elu + 1
  int64_t directions = 0;
  // The shift of queries, and that of keys, is the largest |scale · x|² of a sequence.
  bool stabilize = false;
  // Says that the package draws directions anew at each pass.
  bool redraws = false;
};

// Describes an attention of queries that come of rows [rows, dim] to keys and values that come of
// rows [rows, source_dim].
struct AttentionOptions {
  bool linear = false;  // else softmax
  bool causal = false;
  int64_t dim = 0;
  int64_t source_dim = 0;
  int64_t heads = 0;
  int64_t width = 0;        // of a head's queries and keys
  int64_t value_width = 0;  // of a head
  bool rotary = false;      // positions turn the halves of queries and keys

  FeatureMapOptions features{};  // of linear attention
  double added = 0;              // to the sums of its weights
  double floor = 0;              // of what it divides by; 0: none

  double scale = 0;     // of softmax's scores; 0: 1 / sqrt(width)
  int64_t before = -1;  // its window has so many rows before a query; -1: all
  int64_t after = -1;   // and so many after it
};

// Describes a layer with norms behind its sums:
//   x = norm(x + attention(x)) [, x = norm(x + attention to memory(x))], x = norm(x + ff(x))
struct LayerOptions {
  AttentionOptions self{};
  std::optional<AttentionOptions> cross{};  // of decoders
  int64_t inner = 0;                        // width of the feed-forward
  Activation activation = Activation::kRelu;
  double eps = 1e-5;  // of the norms

  int64_t dim() const { return self.dim; }
};

// Holds the arguments of TransformerEncoderBuilder or TransformerDecoderBuilder.
struct Options {
  int64_t layers = 0;
  LayerOptions layer{};
  bool final_norm = true;

  // These read and check them. They throw ConfigError.
  static Options Encoder(Params& params);
  static Options Decoder(Params& params);

  // Says why the network has no sessions; empty if it has.
  std::string SessionRefusal() const;
};

}  // namespace linserve::fast_transformers
