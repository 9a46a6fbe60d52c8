#include "core/status/json_text.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "core/status/quote.h"

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

// Finds a key that stands twice in one object while it is parsed. Of two values it would be the
// last that counts, whichever was meant.
class KeysSeen {
 public:
  bool operator()(int /*depth*/, nlohmann::json::parse_event_t event,
                  const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) objects_.emplace_back();
    if (event == Event::object_end) objects_.pop_back();
    if (event == Event::key && !objects_.back().insert(parsed.get<std::string>()).second) {
      twice_ = parsed.get<std::string>();
    }
    return true;
  }

  const std::optional<std::string>& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> objects_;  // the keys of each object that is open
  std::optional<std::string> twice_;
};

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text) {
  if (DepthOf(text) > kDeepest) {
    return absl::InvalidArgumentError("it is nested more than " + std::to_string(kDeepest) +
                                      " deep");
  }
  try {
    KeysSeen keys;
    nlohmann::json parsed = nlohmann::json::parse(text, std::ref(keys), /*allow_exceptions=*/true,
                                                  /*ignore_comments=*/true);
    if (!keys.twice()) return parsed;
    return absl::InvalidArgumentError("the key " + Quoted(*keys.twice()) +
                                      " stands twice in an object, expected once");
  } catch (const nlohmann::json::exception& error) {
    // The parser quotes what it has read, which may be all of it.
    return absl::InvalidArgumentError(std::string(error.what()).substr(0, kLongestFault));
  }
}

}  // namespace linserve
