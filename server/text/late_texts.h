#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/strings/late_interaction.h"
#include "text/tokenizer.h"

namespace linserve {

// Says what a text of a late-interaction model is read as. Without a task it is a document of any
// length that the model takes.
enum class TextTask : uint8_t { kNone, kQuery, kDocument };

// Returns the task for which a request names this prompt; "": it names none.
TextTask TaskOf(const std::string& prompt_name);

// Holds what such a text becomes.
struct LateText {
  std::vector<int64_t> ids;
  std::vector<bool> seen{};   // which of them others see; empty: all
  std::vector<bool> given{};  // of which the rows are given; empty: all
};

// Knows how texts become the rows of a late-interaction model. Thread-safe.
class LateTexts {
 public:
  // INVALID_ARGUMENT says what the tokenizer lacks for it.
  static absl::StatusOr<LateTexts> Of(const LateInteraction& settings, const Tokenizer& tokenizer);

  // Returns how many tokens a text may have; nullopt: as many as one without a task.
  std::optional<int64_t> MostTokens(TextTask task) const;

  // Says whether a score is divided by the number of the query's rows.
  bool mean() const { return settings_.mean; }

  // Fills queries up, and says which rows are left out. `ids` are those of the text with its marks.
  LateText Read(TextTask task, std::vector<int64_t> ids) const;

 private:
  LateTexts() = default;

  LateInteraction settings_;
  int64_t filler_ = 0;  // the token that fills queries
  std::set<int64_t> skipped_;
};

// Returns those of the prefixes that the tokenizer knows as tokens, but splits in texts: the whole
// prefix or, if it is no token, its first word.
std::vector<std::string> SplitPrefixes(const LateInteraction& settings, const Tokenizer& tokenizer);

}  // namespace linserve
