#include "text/late_texts.h"

#include <algorithm>
#include <utility>

#include "core/strings/quote.h"

namespace linserve {
namespace {

const Marks kUnmarked;

// Says whether the tokenizer knows the text as a token, and makes others of it in texts.
bool IsSplit(const Tokenizer& tokenizer, const std::string& token, int64_t id) {
  const auto ids = tokenizer.Encode(token, kUnmarked);
  if (!ids.ok() || *ids != std::vector{id}) return true;
  // A token may be found by its normalized text, which is another one.
  const auto text = tokenizer.Decode(*ids, /*marks=*/true);
  return !text.ok() || *text != token;
}

}  // namespace

TextTask TaskOf(const std::string& prompt_name) {
  if (prompt_name.empty()) return TextTask::kNone;
  return prompt_name == "query" ? TextTask::kQuery : TextTask::kDocument;
}

absl::StatusOr<LateTexts> LateTexts::Of(const LateInteraction& settings,
                                        const Tokenizer& tokenizer) {
  LateTexts texts;
  texts.settings_ = settings;
  for (const std::string& token : settings.skipped) {
    const auto id = tokenizer.IdOf(token);
    // A word that is none of the vocabulary's would be the token of all unknown words.
    if (id) texts.skipped_.insert(*id);
  }
  if (!settings.expansion) return texts;
  const std::string& token = settings.expansion->token;
  const auto filler = token.empty() ? tokenizer.filler() : tokenizer.IdOf(token);
  if (!filler) {
    return absl::InvalidArgumentError(
        tokenizer.file() + " has no token " + (token.empty() ? "of a mask" : Quoted(token)) +
        ", which is to fill queries up; name one of its own as \"token\" of query_expansion");
  }
  texts.filler_ = *filler;
  return texts;
}

std::optional<int64_t> LateTexts::MostTokens(TextTask task) const {
  int64_t most = task == TextTask::kDocument ? settings_.document_tokens : 0;
  if (task == TextTask::kQuery) most = settings_.query_tokens;
  return most > 0 ? std::optional(most) : std::nullopt;
}

LateText LateTexts::Read(TextTask task, std::vector<int64_t> ids) const {
  LateText text{.ids = std::move(ids)};
  const bool is_query = task == TextTask::kQuery;
  if (is_query && settings_.expansion) {
    const size_t own = text.ids.size();
    text.ids.resize(std::max(own, static_cast<size_t>(settings_.expansion->length)), filler_);
    if (!settings_.expansion->attended) {
      text.seen.assign(own, true);
      text.seen.resize(text.ids.size(), false);
    }
  }
  const bool skips = is_query ? settings_.skips_in_queries : settings_.skips_in_documents;
  if (!skips || skipped_.empty()) return text;
  for (const int64_t id : text.ids) text.given.push_back(!skipped_.contains(id));
  return text;
}

std::vector<std::string> SplitPrefixes(const LateInteraction& settings,
                                       const Tokenizer& tokenizer) {
  std::vector<std::string> split;
  for (const std::string& prefix : settings.prefixes) {
    const size_t begin = prefix.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    const std::string word = prefix.substr(begin, prefix.find(' ', begin) - begin);
    for (const std::string& token : {prefix, word}) {
      const auto id = tokenizer.IdOf(token);
      if (!id) continue;
      if (IsSplit(tokenizer, token, *id)) split.push_back(token);
      break;
    }
  }
  return split;
}

}  // namespace linserve
