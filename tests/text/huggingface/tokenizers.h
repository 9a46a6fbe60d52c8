#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/test_files.h"
#include "text/huggingface/json_tokenizer.h"
#include "text/sentencepiece/piece_model.h"

namespace linserve {

// Returns the rules of NFKC that make_goldens.py has left out of the tokenizers, in base64.
inline std::string CharsmapInBase64() {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string model = ReadAll(BundledModels() + "/sentence-encoder/1/tokenizer.model");
  const std::string bytes = ParsePieceModel(model)->normalizer.charsmap;
  std::string base64;
  uint32_t bits = 0;
  int held = 0;
  for (const char byte : bytes) {
    bits = bits << 8u | static_cast<unsigned char>(byte);
    for (held += 8; held >= 6; held -= 6) base64 += kDigits[bits >> (held - 6) & 63u];
  }
  if (held > 0) base64 += kDigits[bits << (6 - held) & 63u];
  return base64.append((4 - base64.size() % 4) % 4, '=');
}

// Returns the text of one of the tokenizers that make_goldens.py has trained.
inline std::string TrainedJson(const std::string& name) {
  std::string json = ReadAll(DataFile("tokenizers/" + name + ".json"));
  const std::string place = "@charsmap";
  if (const size_t at = json.find(place); at != std::string::npos) {
    static const std::string charsmap = CharsmapInBase64();
    json.replace(at, place.size(), charsmap);
  }
  return json;
}

inline std::shared_ptr<const Tokenizer> TrainedTokenizer(const std::string& name) {
  const auto parsed = ParseTokenizerJson(TrainedJson(name));
  EXPECT_TRUE(parsed.ok()) << name << ": " << parsed.status();
  return parsed.value_or(nullptr);
}

// Returns what the package makes of texts (make_goldens.py; tokenizers 0.23.3).
inline const nlohmann::json& TokenizerGoldens() {
  static const auto goldens =
      nlohmann::json::parse(std::ifstream(DataFile("tokenizers/goldens.json")));
  return goldens;
}

inline std::vector<std::string> TrainedNames() {
  std::vector<std::string> names;
  for (const auto& [name, golden] : TokenizerGoldens()["tokenizers"].items()) names.push_back(name);
  return names;
}

}  // namespace linserve
