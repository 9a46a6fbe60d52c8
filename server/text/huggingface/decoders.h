#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/huggingface/patterns/pattern.h"

namespace linserve {

// These are the parts of a decoder, with the members that they have in the file.
struct WordPieceDecoder {
  std::string prefix;
  bool cleanup = true;
};
struct ByteLevelDecoder {};
struct MetaspaceDecoder {
  std::string replacement;
  bool drops_first = true;  // the space that was put before the text
};
struct ByteFallbackDecoder {};
struct FuseDecoder {};
struct ReplaceDecoder {
  Pattern pattern;
  std::string content;
};
struct StripDecoder {
  std::string content;
  int64_t start = 0;
  int64_t stop = 0;
};
struct BpeDecoder {
  std::string suffix;
};
using DecoderPart =
    std::variant<WordPieceDecoder, ByteLevelDecoder, MetaspaceDecoder, ByteFallbackDecoder,
                 FuseDecoder, ReplaceDecoder, StripDecoder, BpeDecoder>;

// Makes a text of tokens as the part `decoder` of a tokenizer.json says.
class DecoderChain {
 public:
  // INVALID_ARGUMENT names what is wrong, or not known.
  static absl::StatusOr<DecoderChain> FromJson(const nlohmann::json& part);
  // Without parts, tokens are joined with spaces.
  explicit DecoderChain(std::vector<DecoderPart> parts = {}) : parts_(std::move(parts)) {}

  absl::StatusOr<std::string> Decode(std::vector<std::string> tokens) const;

 private:
  std::vector<DecoderPart> parts_;
  bool joins_with_spaces_ = false;
};

}  // namespace linserve
