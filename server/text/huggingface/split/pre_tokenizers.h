#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/huggingface/characters/aligned_text.h"
#include "text/huggingface/patterns/pattern.h"

namespace linserve {

// Says what becomes of that which a text is split at.
enum class SplitBehavior : uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous,
};

// These are the parts of a pre-tokenizer, with the members that they have in the file.
struct BertSplit {};
struct WhitespaceWords {};
struct WhitespaceSplit {};
struct DelimiterSplit {
  char32_t delimiter = 0;
};
struct PunctuationSplit {
  SplitBehavior behavior = SplitBehavior::kIsolated;
};
struct DigitsSplit {
  bool individual = false;
};
struct PatternSplit {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};
enum class PrependScheme : uint8_t { kFirst, kNever, kAlways };
struct MetaspaceSplit {
  std::string replacement;
  PrependScheme scheme = PrependScheme::kAlways;
  bool split = true;
};
struct ByteLevelSplit {
  bool add_prefix_space = true;
  bool use_regex = true;
};
using SplitPart =
    std::variant<BertSplit, WhitespaceWords, WhitespaceSplit, DelimiterSplit, PunctuationSplit,
                 DigitsSplit, PatternSplit, MetaspaceSplit, ByteLevelSplit>;

// Says where the text stands that is split into pieces.
struct SplitPlace {
  // So many of the first parts had the first piece's beginning before: it only goes on here, and
  // nothing is put before it.
  size_t goes_on = 0;
  bool begins_text = false;  // it is the very beginning of a text
};

// Splits normalised texts as the part `pre_tokenizer` of a tokenizer.json says.
class SplitChain {
 public:
  // INVALID_ARGUMENT names what is wrong, or not known.
  static absl::StatusOr<SplitChain> FromJson(const nlohmann::json& part);
  explicit SplitChain(std::vector<SplitPart> parts = {});

  // Leaves out the last part's step from bytes to characters: its reader takes bytes. REQUIRES:
  // ends_in_bytes().
  void KeepBytes() { keeps_bytes_ = true; }
  // Says whether what comes out is in the characters of bytes: the last part is ByteLevel, or all
  // before it have none.
  bool ends_in_bytes() const;

  // Splits a text into pieces, and changes it where a part does that. None of them is empty.
  // INVALID_ARGUMENT if a regular expression takes too long.
  absl::Status Split(const SplitPlace& place, AlignedText& text,
                     std::vector<ByteRange>& pieces) const;

  // Returns how many of the first parts make sure that a piece ends at `at`, whatever is on either
  // side but the two characters there; nullopt if none does. REQUIRES: characters begin at 0 and
  // `at`, which is inside, of UTF-8.
  std::optional<size_t> CanCut(std::string_view text, size_t at) const;

  // Says whether no part splits anything but by Metaspace: within a piece, only the model decides.
  bool leaves_to_model() const { return leaves_to_model_; }
  // Says whether some part asks whether a piece is the beginning of the text.
  bool asks_for_first_place() const;
  // Returns what the model gets for a space.
  char32_t SpaceBecomes() const;
  size_t parts() const { return parts_.size(); }

 private:
  std::vector<SplitPart> parts_;
  bool keeps_bytes_ = false;
  bool leaves_to_model_ = true;
};

}  // namespace linserve
