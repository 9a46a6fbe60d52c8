#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/huggingface/characters/aligned_text.h"
#include "text/sentencepiece/normalizer.h"

namespace linserve {

// Applies the normalization rules of a SentencePiece model in the way of `tokenizers`, which is not
// SentencePiece's own: of a grapheme cluster of fewer than six bytes, the rule for its first
// characters replaces all, and other clusters are replaced character by character.
class Charsmap {
 public:
  // Takes the rules as SentencePiece has them, in base64. INVALID_ARGUMENT says what is wrong with
  // them.
  static absl::StatusOr<Charsmap> FromBase64(std::string_view base64);

  // Appends what a text becomes. REQUIRES: it is UTF-8, and begins and ends where clusters do.
  void Apply(const AlignedText& from, AlignedText& to) const;

 private:
  // It is shared because the normalizer points to its rules.
  struct Rules {
    explicit Rules(NormalizerRules read) : rules(std::move(read)), found(rules, kept, false) {}
    const NormalizerRules rules;
    const PieceTrie kept;  // of none
    const Normalizer found;
  };

  explicit Charsmap(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)) {}
  void ApplyToCluster(const AlignedText& from, size_t begin, size_t end, AlignedText& to) const;

  std::shared_ptr<const Rules> rules_;
};

}  // namespace linserve
