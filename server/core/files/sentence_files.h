#pragma once

#include <array>

namespace linserve {

// Names the files in which sentence-transformers keeps the settings of its Transformer, in the
// order in which it looks for them. An empty object counts as none.
inline constexpr std::array<const char*, 7> kTransformerSettings = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

}  // namespace linserve
