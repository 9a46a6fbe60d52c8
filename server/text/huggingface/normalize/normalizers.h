#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/huggingface/characters/aligned_text.h"
#include "text/huggingface/normalize/charsmap.h"
#include "text/huggingface/normalize/unicode_forms.h"
#include "text/huggingface/patterns/pattern.h"

namespace linserve {

// These are the parts of a normalizer, with the members that they have in the file.
struct BertNormalizer {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};
struct StripNormalizer {
  bool left = true;
  bool right = true;
};
struct ReplaceNormalizer {
  Pattern pattern;
  std::string content;
};
struct PrependNormalizer {
  std::string prepend;
};
struct StripAccentsNormalizer {};
struct LowercaseNormalizer {};
struct NmtNormalizer {};
struct ByteLevelNormalizer {};
using NormalizerPart = std::variant<BertNormalizer, StripNormalizer, ReplaceNormalizer,
                                    PrependNormalizer, StripAccentsNormalizer, LowercaseNormalizer,
                                    NmtNormalizer, ByteLevelNormalizer, UnicodeForm, Charsmap>;

// Says which parts have something behind them, for one text that is normalised block by block.
struct NormalizerState {
  std::vector<char> begun;  // of each part
};

// Normalizes texts as the part `normalizer` of a tokenizer.json says.
class NormalizerChain {
 public:
  // INVALID_ARGUMENT names what is wrong, or not known.
  static absl::StatusOr<NormalizerChain> FromJson(const nlohmann::json& part);
  explicit NormalizerChain(std::vector<NormalizerPart> parts = {});

  NormalizerState Begin() const { return {std::vector<char>(parts_.size(), 0)}; }

  // Normalizes one block of a text in its place; `last` says that no more follows. REQUIRES: it is
  // UTF-8.
  absl::Status Apply(NormalizerState& state, bool last, AlignedText& block) const;

  // Returns whether what is on both sides of `at` can be blocks of their own: then they become what
  // the whole becomes. REQUIRES: characters begin at 0 and `at`, which is inside, of UTF-8.
  bool CanCut(std::string_view text, size_t at) const;

 private:
  void FindWhatReaches();

  std::vector<NormalizerPart> parts_;
  bool clusters_ = false;  // some part looks at grapheme clusters
  bool words_ = false;     // some part may reach over spaces: cuts are at single ones
  bool whole_ = false;     // some part may reach anywhere
};

}  // namespace linserve
