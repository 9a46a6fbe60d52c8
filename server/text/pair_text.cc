#include "text/pair_text.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace linserve {
namespace {

constexpr const char* kPrompt = "{prompt}";
constexpr const char* kQuery = "{query}";
constexpr const char* kDocument = "{document}";

// Takes all up to `name` off the text, and the name.
std::string TakeUpTo(const std::string& name, std::string& text) {
  const size_t place = text.find(name);
  std::string before = text.substr(0, place);
  text.erase(0, place + name.size());
  return before;
}

absl::Status CheckOnce(const std::string& text, const char* name, bool needed) {
  const size_t place = text.find(name);
  if (place == std::string::npos) {
    if (!needed) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("pair_template has no ", name));
  }
  if (text.find(name, place + 1) == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("pair_template has ", name, " more than once"));
}

}  // namespace

absl::StatusOr<PairText> PairText::Parse(const std::string& text, const Tokenizer& tokenizer) {
  for (const auto& [name, needed] :
       {std::pair{kPrompt, false}, {kQuery, true}, {kDocument, true}}) {
    if (absl::Status status = CheckOnce(text, name, needed); !status.ok()) return status;
  }
  const size_t query = text.find(kQuery);
  const size_t prompt = text.find(kPrompt);
  if (text.find(kDocument) < query || (prompt != std::string::npos && prompt > query)) {
    return absl::InvalidArgumentError(
        "pair_template must have {prompt}, {query} and {document} in this order");
  }
  PairText pair;
  std::string rest = text;
  if (prompt != std::string::npos) pair.before_prompt_ = TakeUpTo(kPrompt, rest);
  pair.before_query_ = TakeUpTo(kQuery, rest);
  pair.before_document_ = TakeUpTo(kDocument, rest);
  if (prompt == std::string::npos) std::swap(pair.before_prompt_, pair.before_query_);
  if (rest.empty()) return pair;
  auto ids = tokenizer.Encode(rest, Marks());
  if (!ids.ok()) return ids.status();
  pair.marks_.after = *std::move(ids);
  return pair;
}

std::string PairText::Write(std::string_view prompt, std::string_view query,
                            std::string_view document) const {
  std::string text;
  for (const std::string_view part : std::array<std::string_view, 6>{
           before_prompt_, prompt, before_query_, query, before_document_, document}) {
    text.append(part);
  }
  return text;
}

}  // namespace linserve
