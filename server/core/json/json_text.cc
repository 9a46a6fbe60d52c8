#include "core/json/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/strings/quote.h"

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

// Finds a key that stands twice in one object: of two values it would be the last that counts,
// whichever was meant. With a callback, the library looks through all siblings of an object at its
// end, so this reads the text by itself.
class KeysSeen : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(int64_t /*value*/) override { return true; }
  bool number_unsigned(uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_array(size_t /*elements*/) override { return true; }
  bool end_array() override { return true; }
  bool start_object(size_t /*elements*/) override {
    objects_.emplace_back();
    return true;
  }
  bool end_object() override {
    objects_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    if (!objects_.back().insert(name).second) twice_ = name;
    return !twice_;
  }
  bool parse_error(size_t /*position*/, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

  const std::optional<std::string>& twice() const { return twice_; }

 private:
  std::vector<std::unordered_set<std::string>> objects_;  // the keys of each object that is open
  std::optional<std::string> twice_;
};

}  // namespace

std::string JsonFault(const std::exception& error) {
  const std::string text = error.what();
  const size_t end = text.starts_with("[json.exception.") ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text) {
  if (DepthOf(text) > kDeepest) {
    return absl::InvalidArgumentError("it is nested more than " + std::to_string(kDeepest) +
                                      " deep");
  }
  try {
    nlohmann::json parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/true,
                                                  /*ignore_comments=*/true);
    KeysSeen keys;
    nlohmann::json::sax_parse(text, &keys, nlohmann::json::input_format_t::json, /*strict=*/true,
                              /*ignore_comments=*/true);
    if (!keys.twice()) return parsed;
    return absl::InvalidArgumentError("the key " + Quoted(*keys.twice()) +
                                      " stands twice in an object, expected once");
  } catch (const nlohmann::json::exception& error) {
    // The parser quotes what it has read, which may be all of it.
    return absl::InvalidArgumentError(JsonFault(error).substr(0, kLongestFault));
  }
}

}  // namespace linserve
