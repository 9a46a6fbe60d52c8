#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/model_fixture.h"
#include "models/random_weights.h"

namespace linserve {

inline constexpr const char* kLptAttention = "linformer_pytorch.MHAttention";
inline constexpr const char* kLptStack = "linformer_pytorch.Linformer";
inline constexpr const char* kLptLanguageModel = "linformer_pytorch.LinformerLM";
inline constexpr const char* kLptEncDec = "linformer_pytorch.LinformerEncDec";
inline constexpr const char* kLptPadder = R"({"type": "linformer_pytorch.Padder"})";

// Models of linformer-pytorch whose biases and norms are not what they start as.
class LinformerPytorchFixture : public ModelFixture {
 protected:
  std::string Directory(const std::string& architecture, const std::string& params,
                        const std::string& wrapper = "null") {
    const std::string directory = Init(architecture, params, 1, wrapper);
    RandomiseWeights(directory);
    return directory;
  }

  std::unique_ptr<Model> Make(const std::string& architecture, const std::string& params,
                              const std::string& wrapper = "null") {
    return Load(Directory(architecture, params, wrapper));
  }

  // About a third of it false.
  Tensor Mask(int64_t length) {
    auto [mask, bytes] = Tensor::Allocate(DType::kBool, {length});
    for (int64_t i = 0; i < length; ++i) bytes[i] = std::byte(Any(0, 2) > 0 ? 1 : 0);
    return mask;
  }

  // True on the first `count` places.
  static Tensor MaskOf(int64_t length, int64_t count) {
    auto [mask, bytes] = Tensor::Allocate(DType::kBool, {length});
    for (int64_t i = 0; i < length; ++i) bytes[i] = std::byte(i < count ? 1 : 0);
    return mask;
  }

  Tensor Ids(int64_t length, int64_t vocabulary) {
    return Tokens(length, vocabulary).inputs.at("x");
  }
};

// "{" + base + ", " + more + "}"
inline std::string LptArguments(const std::string& base, const std::string& more) {
  return "{" + base + (more.empty() ? "" : ", " + more) + "}";
}

}  // namespace linserve
