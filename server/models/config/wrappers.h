#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/sequence/batch.h"

namespace linserve {

// These name what packages put around a model, as "wrapper": {"type": ...} of its config.json.
inline constexpr char kLinformerPytorchPadder[] = "linformer_pytorch.Padder";
inline constexpr char kAutopadder[] = "linear_attention_transformer.Autopadder";

// Returns the padding that gives the numbers of the wrapper's package; nullopt: any does.
inline std::optional<Padding> PaddingOfWrapper(const nlohmann::json& wrapper) {
  const bool zeros =
      wrapper.is_object() && wrapper.value("type", nlohmann::json()) == kLinformerPytorchPadder;
  return zeros ? std::optional(Padding::kZeros) : std::nullopt;
}

}  // namespace linserve
