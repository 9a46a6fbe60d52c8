#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/model_fixture.h"
#include "models/random_weights.h"

namespace linserve {

inline constexpr const char* kLatStack = "linear_attention_transformer.LinearAttentionTransformer";
inline constexpr const char* kLatLanguageModel =
    "linear_attention_transformer.LinearAttentionTransformerLM";
inline constexpr const char* kLatEncoderDecoder = "linear_attention_transformer.EncoderDecoder";

inline constexpr const char* kPadRight =
    R"({"type": "linear_attention_transformer.Autopadder", "pad_left": false})";
inline constexpr const char* kPadLeft =
    R"({"type": "linear_attention_transformer.Autopadder", "pad_left": true})";

inline constexpr int64_t kVocabulary = 30;

// Models of linear-attention-transformer whose biases and norms are not what they start as.
class LatFixture : public ModelFixture {
 protected:
  std::string Directory(const std::string& architecture, const std::string& params,
                        const std::string& wrapper = "null") {
    const std::string directory = Init(architecture, params);
    RandomiseWeights(directory);
    Write(directory, "config.json",
          R"({"architecture": ")" + architecture + R"(", "params": )" + params +
              R"(, "wrapper": )" + wrapper + "}");
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

  // True on [begin, end).
  static Tensor MaskOf(int64_t length, int64_t begin, int64_t end) {
    auto [mask, bytes] = Tensor::Allocate(DType::kBool, {length});
    for (int64_t i = 0; i < length; ++i) bytes[i] = std::byte(i >= begin && i < end ? 1 : 0);
    return mask;
  }

  Tensor Ids(int64_t length) { return Tokens(length, kVocabulary).inputs.at("x"); }
};

}  // namespace linserve
