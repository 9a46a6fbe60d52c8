#pragma once

#include <string>

#include "models/model_fixture.h"
#include "models/random_weights.h"

namespace linserve {

inline constexpr const char* kLptAttention = "linformer_pytorch.MHAttention";
inline constexpr const char* kLptStack = "linformer_pytorch.Linformer";
inline constexpr const char* kLptLanguageModel = "linformer_pytorch.LinformerLM";
inline constexpr const char* kLptEncDec = "linformer_pytorch.LinformerEncDec";
inline constexpr const char* kLptPadder = R"({"type": "linformer_pytorch.Padder"})";

// Gives "{" + base + ", " + more + "}".
inline std::string LptArguments(const std::string& base, const std::string& more) {
  return "{" + base + (more.empty() ? "" : ", " + more) + "}";
}

}  // namespace linserve
