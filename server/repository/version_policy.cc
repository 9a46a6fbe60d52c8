#include "repository/version_policy.h"

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

std::string Trimmed(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

std::vector<std::string> Split(const std::string& text, char separator) {
  return absl::StrSplit(text, separator);
}

std::optional<int64_t> Number(const std::string& untrimmed) {
  const std::string text = Trimmed(untrimmed);
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || last != end || number < 1) return std::nullopt;
  return number;
}

std::optional<VersionChoice> ParseChoice(const std::string& untrimmed) {
  const std::string text = Trimmed(untrimmed);
  VersionChoice choice;
  if (text == "all") return choice;
  if (text == "latest") {
    choice.latest = 1;
    return choice;
  }
  if (text.starts_with("latest(") && text.ends_with(')')) {
    const auto count = Number(text.substr(7, text.size() - 8));
    if (!count) return std::nullopt;
    choice.latest = *count;
    return choice;
  }
  for (const std::string& part : Split(text, ',')) {
    const auto version = Number(part);
    if (!version) return std::nullopt;
    choice.versions.insert(*version);
  }
  return choice;
}

bool Serves(const VersionChoice& choice, int64_t version, int64_t rank_from_latest) {
  if (choice.latest > 0) return rank_from_latest < choice.latest;
  return choice.versions.empty() || choice.versions.contains(version);
}

}  // namespace

absl::StatusOr<VersionPolicy> VersionPolicy::Parse(const std::string& text) {
  VersionPolicy policy;
  policy.text_ = text;
  for (const std::string& part : Split(text, ';')) {
    const size_t equals = part.rfind('=');
    const bool named = equals != std::string::npos;
    const auto choice = ParseChoice(named ? part.substr(equals + 1) : part);
    if (!choice) {
      return absl::InvalidArgumentError(
          Quoted(part) +
          " is none of all, latest, latest(N), versions such as 1,3, or MODEL=one of these; "
          "several are separated by ;");
    }
    if (named) {
      policy.of_model_[Trimmed(part.substr(0, equals))] = *choice;
    } else {
      policy.choice_ = *choice;
    }
  }
  return policy;
}

const VersionChoice& VersionPolicy::ChoiceFor(const std::string& model) const {
  const auto own = of_model_.find(model);
  return own == of_model_.end() ? choice_ : own->second;
}

std::vector<ModelDirectory> VersionPolicy::Choose(const std::vector<ModelDirectory>& found) const {
  std::vector<ModelDirectory> chosen;
  int64_t rank = 0;
  for (size_t i = found.size(); i-- > 0;) {
    rank = i + 1 < found.size() && found[i + 1].name == found[i].name ? rank + 1 : 0;
    if (Serves(ChoiceFor(found[i].name), found[i].version, rank))
      chosen.insert(chosen.begin(), found[i]);
  }
  return chosen;
}

}  // namespace linserve
