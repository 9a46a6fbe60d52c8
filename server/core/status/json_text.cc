#include "core/status/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace linserve {
namespace {

constexpr size_t kDeepest = 64;
constexpr size_t kLongestFault = 256;

// Returns the place behind what begins at `at`, be it a text, a comment or one character.
size_t Behind(std::string_view text, size_t at) {
  const auto after = [&](std::string_view end, size_t from) {
    const size_t found = text.find(end, from);
    return found == std::string_view::npos ? text.size() : found + end.size();
  };
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return after("\n", at);
  if (rest.starts_with("/*")) return after("*/", at + 2);
  if (rest.front() != '"') return at + 1;
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// Returns how deep arrays and objects are nested, before anything is made of them.
size_t DepthOf(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  for (size_t at = 0; at < text.size(); at = Behind(text, at)) {
    if (text[at] == '[' || text[at] == '{') deepest = std::max(deepest, ++depth);
    if ((text[at] == ']' || text[at] == '}') && depth > 0) --depth;
  }
  return deepest;
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text) {
  if (DepthOf(text) > kDeepest) {
    return absl::InvalidArgumentError("it is nested more than " + std::to_string(kDeepest) +
                                      " deep");
  }
  try {
    return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/true,
                                 /*ignore_comments=*/true);
  } catch (const nlohmann::json::exception& error) {
    // The parser quotes what it has read, which may be all of it.
    return absl::InvalidArgumentError(std::string(error.what()).substr(0, kLongestFault));
  }
}

}  // namespace linserve
