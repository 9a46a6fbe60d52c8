#include "models/fast_transformers/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "models/config/activation_param.h"

namespace linserve::fast_transformers {
namespace {

constexpr double kAdded = 1e-6;
constexpr double kMostScale = 1e6;
constexpr const char* kCausalMask = "TriangularCausalMask";

// A builder takes the arguments of all attentions, whichever is built.
constexpr std::array kWithoutEffect = {"dropout",
                                       "attention_dropout",
                                       "event_dispatcher",
                                       "clusters",
                                       "iterations",
                                       "bits",
                                       "hash_bias",
                                       "topk",
                                       "chunk_size",
                                       "rounds",
                                       "masked",
                                       "length_limit",
                                       "max_sequence_length",
                                       "aft_parameterization"};

FeatureMapOptions Fourier(Params& params, int64_t dims, double scale, int64_t least = 2) {
  FeatureMapOptions options;
  if (dims < 2) {
    params.Fail("n_dims",
                "as many dimensions as make a direction, at least " + std::to_string(least));
  }
  options.directions = dims / 2;
  options.random = RandomFeatures{.map = RandomFeatures::Map::kFourier,
                                  .scale = scale,
                                  .ratio = std::sqrt(2 / static_cast<double>(dims))};
  return options;
}

FeatureMapOptions Smoothed(Params& params, int64_t dims, int64_t width, double scale) {
  // One dimension is the constant's. The package takes 0 others for its default.
  FeatureMapOptions options = Fourier(params, dims > 1 ? dims - 1 : width, scale, /*least=*/3);
  options.random->constant = params.Number("smoothing", 1, -kMostScale, kMostScale);
  return options;
}

FeatureMapOptions Favor(Params& params, int64_t dims, double scale) {
  FeatureMapOptions options = Fourier(params, dims, scale);
  options.random = RandomFeatures{.map = RandomFeatures::Map::kMirrored,
                                  .scale = scale,
                                  .ratio = 1 / std::sqrt(static_cast<double>(dims))};
  options.stabilize = params.Flag("stabilize", false);
  return options;
}

FeatureMapOptions Generalized(Params& params, int64_t dims, double scale) {
  FeatureMapOptions options;
  options.directions = dims;
  options.random = RandomFeatures{.map = RandomFeatures::Map::kKernel,
                                  .scale = scale,
                                  .kernel = ActivationParam(params, "kernel_fn", "relu")};
  return options;
}

// Reads a feature map by its name, whose own arguments stand beside it; or an object of them.
FeatureMapOptions FeatureMapFrom(Params& all, int64_t width) {
  Params* object = all.IsObject("feature_map") ? all.Object("feature_map") : nullptr;
  Params& params = object != nullptr ? *object : all;
  const std::string name = params.Choice(
      object != nullptr ? "name" : "feature_map", "elu",
      {"elu", "elu_feature_map", "Favor", "GeneralizedRandomFeatures", "RandomFourierFeatures",
       "SmoothedRandomFourierFeatures", "SmoothedRandomFeatures"});
  if (name.starts_with("elu")) return {};
  const bool general = name == "GeneralizedRandomFeatures";
  const int64_t dims = params.Positive("n_dims", width);
  const double temperature = params.Number(
      "softmax_temp", general ? 1 : 1 / std::sqrt(static_cast<double>(width)), 0, kMostScale);
  const double scale = std::sqrt(temperature);
  FeatureMapOptions options = general           ? Generalized(params, dims, scale)
                              : name == "Favor" ? Favor(params, dims, scale)
                              : name == "RandomFourierFeatures"
                                  ? Fourier(params, dims, scale)
                                  : Smoothed(params, dims, width, scale);
  options.redraws = !params.Flag("deterministic_eval", false);
  params.Ignore("orthogonal");  // how directions were drawn
  params.Ignore("redraw");
  return options;
}

// Sets what an attention of this type sees and how it weighs that.
void SetType(AttentionOptions& options, Params& params, const char* type_key,
             const char* mask_key) {
  const std::string type =
      params.Choice(type_key, "full", {"full", "linear", "causal-linear", "local"});
  const std::string mask = params.Call().Choice(mask_key, "FullMask", {"FullMask", kCausalMask});
  options.causal = mask == kCausalMask || type == "causal-linear";
  options.linear = type == "linear" || type == "causal-linear";
  options.scale = params.Number("softmax_temp", 0, 0, kMostScale);
  if (type == "linear" && options.causal) {
    params.Call().Fail(mask_key,
                       "FullMask, since attention \"linear\" sees all keys; "
                       "\"causal-linear\" is causal");
  }
  if (options.linear) options.added = kAdded;
  if (type == "local") {
    const int64_t context = params.Positive("local_context");
    options.before = context / 2;
    options.after = (context + 1) / 2 - 1;
  } else if (options.causal) {
    options.after = 0;
  }
}

// Reads what encoders and decoders have in common.
Options Common(Params& params) {
  Options options;
  AttentionOptions& self = options.layer.self;
  options.layers = params.Depth("n_layers", 4);
  self.heads = params.Heads("n_heads", 4);
  self.width = params.Positive("query_dimensions", 64);
  self.value_width = params.Positive("value_dimensions", 64);
  self.dim = params.Positive("model_dimensions", self.heads * self.value_width);
  self.source_dim = self.dim;
  options.layer.inner = params.NotNegative("feed_forward_dimensions", 1024);
  if (options.layer.inner == 0) options.layer.inner = 4 * self.dim;
  options.layer.activation = params.Choice("activation", "relu", {"relu", "gelu"}) == "relu"
                                 ? Activation::kRelu
                                 : Activation::kGelu;
  options.final_norm = params.Flag("final_normalization", true);
  self.features = FeatureMapFrom(params, self.width);
  params.Ignore("local_context");
  params.Ignore("softmax_temp");
  for (const char* key : kWithoutEffect) params.Ignore(key);
  return options;
}

}  // namespace

Options Options::Encoder(Params& params) {
  Options options = Common(params);
  SetType(options.layer.self, params, "attention_type", "attn_mask");
  return options;
}

Options Options::Decoder(Params& params) {
  Options options = Common(params);
  AttentionOptions& self = options.layer.self;
  AttentionOptions cross = self;
  cross.heads = params.Heads("cross_n_heads", self.heads);
  cross.width = params.Positive("cross_query_dimensions", self.width);
  cross.value_width = params.Positive("cross_value_dimensions", self.value_width);
  cross.source_dim = params.Positive("cross_model_dimensions", cross.heads * cross.value_width);
  SetType(self, params, "self_attention_type", "x_mask");
  SetType(cross, params, "cross_attention_type", "memory_mask");
  if (cross.linear && cross.features.random && cross.width != self.width) {
    params.Fail("cross_query_dimensions", "query_dimensions = " + std::to_string(self.width) +
                                              ", which the feature map's random directions have");
  }
  options.layer.cross = cross;
  return options;
}

std::string Options::SessionRefusal() const {
  const AttentionOptions& self = layer.self;
  if (!self.linear && self.causal) {
    return "softmax attention needs every earlier key, so that what a session keeps would grow "
           "with the sequence; attention \"causal-linear\" has sessions";
  }
  if (!self.causal) return "its attention is not causal, and every row attends to those after it";
  if (self.features.stabilize) {
    return "\"stabilize\" shifts features by the largest of the whole sequence";
  }
  if (layer.cross && (!layer.cross->linear || layer.cross->causal)) {
    return "its attention to the memory is not \"linear\", which keeps the same of any memory";
  }
  return "";
}

}  // namespace linserve::fast_transformers
