#pragma once

#include <cstdint>

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

}  // namespace linserve
