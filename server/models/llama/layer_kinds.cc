#include "models/llama/layer_kinds.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

namespace linserve::llama {
namespace {

constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";
constexpr const char* kWindow = "sliding_window";

// Says of each layer whether layer_types has it of this type, or else sees all.
std::vector<bool> LayersOf(Params& params, size_t depth, const char* type) {
  std::vector<bool> layers;
  for (const std::string& one : params.Choices("layer_types", {kFull, type})) {
    layers.push_back(one == type);
  }
  if (layers.size() != depth) {
    params.Fail("layer_types", "as many as num_hidden_layers = " + std::to_string(depth));
  }
  return layers;
}

// Says of each layer whether it has a window, as layer_types does; nullopt where that is silent.
std::optional<std::vector<bool>> SlidingByType(Params& params, size_t depth) {
  if (!params.Has("layer_types")) return std::nullopt;
  return LayersOf(params, depth, kSliding);
}

// Reads it of Qwen's models, whose layers from some one on have windows.
std::vector<bool> QwenSliding(Params& params, size_t depth) {
  constexpr int64_t kUsualFirst = 28;
  const bool uses = params.Flag("use_sliding_window", false);
  const auto first = static_cast<size_t>(params.NotNegative("max_window_layers", kUsualFirst));
  auto sliding = SlidingByType(params, depth);
  params.Ignore(kWindow);
  if (!sliding) {
    sliding.emplace(depth, false);
    const bool windows = uses && !params.IsNone(kWindow);
    for (size_t i = first; windows && i < depth; ++i) (*sliding)[i] = true;
  }
  const bool any = std::find(sliding->begin(), sliding->end(), true) != sliding->end();
  if (any && !uses) {
    params.Fail("use_sliding_window", std::string("true, as layer_types has ") + kSliding);
  }
  return *sliding;
}

// Reads it of Gemma 2 and 3, every so many of whose layers have no window.
std::vector<bool> GemmaSliding(Family family, Params& params, size_t depth) {
  size_t pattern = 2;
  if (family == Family::kGemma3) {
    constexpr int64_t kUsualPattern = 6;
    pattern = static_cast<size_t>(params.Positive("sliding_window_pattern", kUsualPattern));
    params.Ignore("_sliding_window_pattern");
  }
  if (auto sliding = SlidingByType(params, depth)) return *sliding;
  std::vector<bool> sliding;
  for (size_t i = 1; i <= depth; ++i) sliding.push_back(i % pattern != 0);
  return sliding;
}

// Returns which layers of LFM2 have convolutions.
std::vector<bool> Lfm2Convolves(Params& params, size_t depth) {
  const auto attend = params.NotNegativeList("full_attn_idxs");
  if (params.Has("layer_types")) return LayersOf(params, depth, "conv");
  std::vector<bool> convolves(depth, attend.has_value());
  for (const int64_t layer : attend.value_or(std::vector<int64_t>())) {
    if (layer < static_cast<int64_t>(depth)) convolves[static_cast<size_t>(layer)] = false;
  }
  return convolves;
}

// Returns which layers of SmolLM3 have positions.
std::vector<bool> SmolTurned(Params& params, size_t depth) {
  constexpr int64_t kUsualInterval = 4;
  const auto interval =
      static_cast<size_t>(params.Positive("no_rope_layer_interval", kUsualInterval));
  const auto given = params.NotNegativeList("no_rope_layers");
  if (given && given->size() < depth) {
    params.Fail("no_rope_layers", "at least num_hidden_layers = " + std::to_string(depth));
  }
  std::vector<bool> turned;
  for (size_t i = 0; i < depth; ++i) {
    turned.push_back(given ? (*given)[i] != 0 : (i + 1) % interval != 0);
  }
  return turned;
}

// Returns which layers of SmolLM3 have windows: some that have no positions, unless layer_types
// says.
std::vector<bool> SmolSliding(Params& params, size_t depth) {
  const bool uses = params.Flag("use_sliding_window", false) && params.Has(kWindow);
  params.Ignore(kWindow);
  std::vector<bool> sliding = SmolTurned(params, depth);
  for (size_t i = 0; i < depth; ++i) sliding[i] = uses && !sliding[i];
  if (const auto by_type = SlidingByType(params, depth)) sliding = *by_type;
  if (!params.Has(kWindow) && std::find(sliding.begin(), sliding.end(), true) != sliding.end()) {
    params.Fail("layer_types",
                std::string("none of them ") + kSliding + ", as there is no " + kWindow);
  }
  return sliding;
}

std::vector<bool> SlidingOf(Family family, Params& params, size_t depth) {
  switch (family) {
    case Family::kQwen2:
    case Family::kQwen3:
      return QwenSliding(params, depth);
    case Family::kGemma2:
    case Family::kGemma3:
      return GemmaSliding(family, params, depth);
    case Family::kMistral:
      params.RequireNone("layer_types", "all layers have sliding_window");
      params.Ignore(kWindow);
      return std::vector<bool>(depth, !params.IsNone(kWindow));
    case Family::kMinistral:
      params.Ignore(kWindow);
      return SlidingByType(params, depth).value_or(std::vector<bool>(depth, true));
    case Family::kPhi3:
      params.Ignore(kWindow);
      return std::vector<bool>(depth, params.Has(kWindow));
    case Family::kSmolLm3:
      return SmolSliding(params, depth);
    case Family::kLlama:
    case Family::kGemma:
    case Family::kEuroBert:
    case Family::kGranite:
    case Family::kOlmo2:
    case Family::kLfm2:
      break;
  }
  return std::vector<bool>(depth, false);
}

// Returns what a layer with a window sees.
LayerKind SlidingKind(Family family, Params& params, bool causal) {
  constexpr int64_t kUsualWindow = 4096;
  if (params.IsNone(kWindow)) params.Fail(kWindow, "a number, as there are layers with a window");
  const int64_t window = params.Positive(kWindow, kUsualWindow);
  if (causal) return {.before = window - 1, .after = 0};
  // Gemma's is the width of the whole window, and others' the reach on either side.
  const int64_t reach = family == Family::kGemma3 ? window / 2 : window;
  return {.before = reach, .after = reach};
}

bool IsCausal(Family family, Params& params) {
  const bool causal = params.Flag("is_causal", family != Family::kEuroBert);
  if (family == Family::kEuroBert) {
    if (causal) params.Fail("is_causal", "false: only encoders of this model are computed");
    return false;
  }
  if (!IsGemma(family)) return causal;
  constexpr const char* kBidirectional = "use_bidirectional_attention";
  const bool bidirectional = params.Flag(kBidirectional, false);
  if (family == Family::kGemma3) {
    if (!causal)
      params.Fail("is_causal", std::string("true: ") + kBidirectional + " says it of this model");
    return !bidirectional;
  }
  if (bidirectional && !params.Has("is_causal")) {
    params.Fail(kBidirectional,
                "false beside no is_causal: the package follows it in some batches only");
  }
  return causal;
}

}  // namespace

void SetLayerKinds(Family family, Params& params, Options& options) {
  const bool causal = IsCausal(family, params);
  const std::vector<bool> sliding = SlidingOf(family, params, options.layers.size());
  std::vector<bool> turned(sliding.size(), true);
  if (family == Family::kSmolLm3) turned = SmolTurned(params, sliding.size());
  std::vector<bool> convolves(sliding.size(), false);
  if (family == Family::kLfm2) convolves = Lfm2Convolves(params, sliding.size());
  for (size_t i = 0; i < sliding.size(); ++i) {
    LayerKind& kind = options.layers[i];
    kind = sliding[i] ? SlidingKind(family, params, causal)
                      : LayerKind{.before = -1, .after = causal ? 0 : -1};
    kind.rotary = family == Family::kGemma3 && sliding[i] ? 1 : 0;
    kind.turned = turned[i];
    if (convolves[i]) kind = {.convolves = true};
  }
}

std::vector<RotaryFrequencies> GemmaRotary(Params& params, const RotaryUsual& usual) {
  constexpr double kFullTheta = 1e6;
  constexpr double kSlidingTheta = 1e4;
  Params* by_type = params.Object("rope_parameters");
  Params* scaling = params.Object("rope_scaling");
  if (by_type != nullptr) {
    if (scaling != nullptr) {
      params.Fail("rope_scaling", "none beside rope_parameters, which says the same");
    }
    for (const char* key : {"rope_type", "type", "rope_theta"}) {
      by_type->RequireNone(key, "it is said for each type of layers");
    }
  }
  const auto read = [&](Params* rope, const char* key, double theta) {
    theta = params.Number(key, theta, 1, kLargestTheta);
    if (rope != nullptr) rope->RequireNone("truncate", "the package does not follow it there");
    return RotaryParams(params, rope, {theta, usual.longest});
  };
  return {read(by_type != nullptr ? by_type->Object(kFull) : scaling, "rope_theta", kFullTheta),
          read(by_type != nullptr ? by_type->Object(kSliding) : nullptr, "rope_local_base_freq",
               kSlidingTheta)};
}

}  // namespace linserve::llama
