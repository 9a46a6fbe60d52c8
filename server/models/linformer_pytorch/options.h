#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/config/params.h"
#include "models/network/layers.h"

// These are the constructor arguments of linformer_pytorch 0.19.3.
namespace linserve::linformer_pytorch {

// Says which of a model's E and F are one tensor: none; those of a layer's heads; those of a
// layer's heads, E and F being one; those of the whole model, E and F being one.
enum class ParameterSharing : uint8_t { kNone, kHeadwise, kKv, kLayerwise };

enum class ProjectionMethod : uint8_t { kLearnable, kConvolution, kNoParams };

// Bounds what a computation may hold at once of a layer besides its rows. The package's checkpoint
// levels trade time for memory in training; here they choose this, and no number changes.
struct LayerScratch {
  int64_t rows = 0;  // of attention
  int64_t feed_forward_rows = 0;
  bool by_head = false;

  // Reads the checkpoint level. C0 allows the whole layer, up to a bound; C1 small slices of rows;
  // C2 goes head by head, too.
  static LayerScratch From(Params& params);
};

// Holds the arguments of one attention layer (MHAttention).
struct HeadOptions {
  int64_t input_size = 0;
  int64_t width = 0;  // of the rows
  int64_t dim_head = 0;
  int64_t heads = 0;
  int64_t dim_k = 0;
  ParameterSharing sharing = ParameterSharing::kLayerwise;
  ProjectionMethod method = ProjectionMethod::kLearnable;
  bool full_attention = false;
  bool causal = false;
  std::optional<int64_t> output_inner;  // w_o_intermediate_dim

  int64_t inner() const { return heads * dim_head; }
  int64_t stride() const { return input_size / dim_k; }  // of a convolution
  // Returns how many slots E and F give: a convolution's windows may be more than dim_k.
  int64_t slots() const;

  // Reads and checks the arguments of the constructor of MHAttention.
  static HeadOptions FromAttention(Params& params);
  // Throws if `params` ask for what no input fits: the key for dim_k is `prefix` + "dim_k".
  void CheckProjection(const Params& params, const std::string& prefix) const;
};

// Holds the arguments of a stack of layers (Linformer).
struct StackOptions {
  HeadOptions attention;  // of the first layer; `causal` as the constructor says
  int64_t depth = 1;
  int64_t dim_ff = 256;
  Activation activation = Activation::kGelu;
  int64_t k_reduce_by_layer = 0;
  bool include_ff = true;
  bool decoder_mode = false;
  std::optional<int64_t> ff_intermediate;
  LayerScratch scratch;

  int64_t channels() const { return attention.width; }
  int64_t WidthBefore(int64_t layer) const;
  // Returns the options of a layer's self-attention, or with `cross` those of its attention to the
  // embeddings.
  HeadOptions AttentionOf(int64_t layer, bool cross) const;

  // The class whose arguments are read decides their defaults and names.
  enum class Owner : uint8_t { kLinformer, kLanguageModel, kEncoder, kDecoder };
  static StackOptions From(Params& params, Owner owner);
  static std::string Prefix(Owner owner);
};

// Ignores the call argument `visualize`: what the package's attention can keep for its visualizer
// changes no number.
inline void IgnoreVisualizer(Params& params) { params.Call().Ignore("visualize"); }

// Holds the arguments of LinformerLM.
struct LanguageModelOptions {
  StackOptions stack;
  int64_t num_tokens = 0;
  int64_t emb_dim = 0;
  bool return_emb = false;

  static LanguageModelOptions From(Params& params, StackOptions::Owner owner);
};

}  // namespace linserve::linformer_pytorch
