#include "models/transformers/positions/rotary_params.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/config/hugging_face_config.h"

namespace linserve {
namespace {

using Scaling = RotaryFrequencies::Scaling;

constexpr double kLargestFactor = 1e6;
constexpr double kLeastFactor = 1e-6;
constexpr int64_t kTrainedOfPhi3 = 4096;  // where its configuration is silent

std::string TypeOf(Params& rope, const RotaryUsual& usual) {
  std::vector<std::string> known = {"default", "linear", "dynamic", "llama3", "longrope", "yarn"};
  if (usual.of_phi3) known = {"default", "longrope"};
  const std::string older = rope.Choice("type", "default", known);
  return rope.Choice("rope_type", older, known);
}

double FactorOf(Params& rope, const char* key) {
  if (!rope.Has(key)) rope.Fail(key, "a number, which such a rope_type needs");
  return rope.Number(key, 1, kLeastFactor, kLargestFactor);
}

// Returns how many positions the model was trained with.
double TrainedOf(Params& params, Params& rope, const RotaryUsual& usual) {
  constexpr const char* kKey = "original_max_position_embeddings";
  const int64_t own = rope.Positive(kKey, usual.longest);
  return static_cast<double>(params.Positive(kKey, usual.of_phi3 ? kTrainedOfPhi3 : own));
}

void CheckOrder(Params& rope, const char* key, const RotaryFrequencies& rotary) {
  if (rotary.fast > rotary.slow) return;
  rope.Fail(key, "more than the one for slow turns, " + std::to_string(rotary.slow));
}

void ReadLlama3(Params& rope, RotaryFrequencies& rotary) {
  rotary.scaling = Scaling::kLlama3;
  rotary.factor = FactorOf(rope, "factor");
  rotary.slow = FactorOf(rope, "low_freq_factor");
  rotary.fast = FactorOf(rope, "high_freq_factor");
  CheckOrder(rope, "high_freq_factor", rotary);
}

// Returns by how much YaRN makes sines and cosines larger for this factor.
double AmplitudeOf(double factor, double scale = 1) {
  constexpr double kShare = 0.1;
  return factor <= 1 ? 1 : kShare * scale * std::log(factor) + 1;
}

void ReadYarn(Params& rope, double longest, RotaryFrequencies& rotary) {
  rotary.scaling = Scaling::kYarn;
  rotary.factor = rope.Has("factor") ? FactorOf(rope, "factor") : longest / rotary.trained;
  const auto number = [&rope](const char* key, double fallback) {
    const double given = rope.Number(key, fallback, 0, kLargestFactor);
    return given == 0 ? fallback : given;
  };
  rotary.slow = number("beta_slow", 1);
  rotary.fast = number("beta_fast", 32);
  CheckOrder(rope, "beta_fast", rotary);
  rotary.whole_places = rope.Flag("truncate", true);
  const double one = number("mscale", 0);
  const double all = number("mscale_all_dim", 0);
  rotary.amplitude = one > 0 && all > 0
                         ? AmplitudeOf(rotary.factor, one) / AmplitudeOf(rotary.factor, all)
                         : AmplitudeOf(rotary.factor);
  rotary.amplitude = rope.Number("attention_factor", rotary.amplitude, 0, kLargestFactor);
  if (rotary.theta == 1) rope.Fail("rope_theta", "more than 1, as pairs are told apart by it");
}

// Returns which share of a head is turned.
double ShareOf(Params& params, const RotaryUsual& usual, double fallback) {
  const double share = params.Number("partial_rotary_factor", fallback, 0, 1);
  if (share != 1 && !usual.of_phi3) {
    params.Fail("partial_rotary_factor", "1: heads are turned as a whole");
  }
  return share;
}

// Some positions are the same for all lengths only up to the one that the configuration names.
void CheckLength(Params& params, const std::string& type, const char* key, double longest) {
  if (static_cast<double>(params.Positive(kTextsUpTo, 1)) <= longest) return;
  params.Fail(kTextsUpTo, std::string("at most ") + key + " = " +
                              std::to_string(static_cast<int64_t>(longest)) +
                              ": behind it, positions of rope_type " + type +
                              " depend on the length");
}

void ReadLong(Params& params, Params& rope, double longest, RotaryFrequencies& rotary) {
  rotary.scaling = Scaling::kLong;
  rotary.factors = rope.Numbers("short_factor", kLeastFactor, kLargestFactor);
  const double factor = rope.Has("factor") ? FactorOf(rope, "factor") : longest / rotary.trained;
  if (factor > 1) rotary.amplitude = std::sqrt(1 + std::log(factor) / std::log(rotary.trained));
  rotary.amplitude = rope.Number("attention_factor", rotary.amplitude, 0, kLargestFactor);
  rope.Ignore("long_factor");
  CheckLength(params, "longrope", "original_max_position_embeddings", rotary.trained);
}

}  // namespace

RotaryFrequencies RotaryParams(Params& params, const RotaryUsual& usual) {
  Params* scaling = params.Object("rope_scaling");
  Params* rope = params.Object("rope_parameters");
  if (scaling != nullptr && rope != nullptr) {
    params.Fail("rope_scaling", "none beside rope_parameters, which says the same");
  }
  if (rope != nullptr) {
    for (const char* type : {"full_attention", "sliding_attention"}) {
      rope->RequireNone(type, "all layers of this model have the same positions");
    }
  }
  return RotaryParams(
      params, scaling != nullptr ? scaling : rope,
      {params.Number("rope_theta", usual.theta, 1, kLargestTheta), usual.longest, usual.of_phi3});
}

RotaryFrequencies RotaryParams(Params& params, Params* rope, const RotaryUsual& usual) {
  RotaryFrequencies rotary{.theta = usual.theta};
  rotary.share = ShareOf(params, usual, 1);
  if (rope == nullptr) return rotary;
  rotary.share = ShareOf(*rope, usual, rotary.share);
  rotary.theta = rope->Number("rope_theta", usual.theta, 1, kLargestTheta);
  const std::string type = TypeOf(*rope, usual);
  const auto longest = static_cast<double>(usual.longest);
  if (type == "llama3" || type == "yarn" || type == "longrope")
    rotary.trained = TrainedOf(params, *rope, usual);
  if (type == "llama3") ReadLlama3(*rope, rotary);
  if (type == "yarn") ReadYarn(*rope, longest, rotary);
  if (type == "longrope") ReadLong(params, *rope, longest, rotary);
  if (type == "linear") {
    rotary.scaling = Scaling::kLinear;
    rotary.factor = FactorOf(*rope, "factor");
  }
  if (type == "dynamic") {
    FactorOf(*rope, "factor");
    CheckLength(params, type, "max_position_embeddings", longest);
  }
  return rotary;
}

}  // namespace linserve
