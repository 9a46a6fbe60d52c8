#include "rest/parse_json.h"

#include <string>

namespace linserve {

using nlohmann::json;

absl::StatusOr<json> ParseObject(std::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError("expected a JSON object; the body is empty");
  constexpr int kDeepest = 32;
  bool too_deep = false;
  const auto keep = [&](int depth, json::parse_event_t /*event*/, const json& /*parsed*/) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  json parsed;
  try {
    parsed = json::parse(text, keep);
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError("the body is not JSON: a syntax error at byte " +
                                      std::to_string(error.byte));
  } catch (const json::exception&) {
    return absl::InvalidArgumentError("the body holds a number that is too large");
  }
  if (too_deep) {
    return absl::InvalidArgumentError("the body is nested more than " + std::to_string(kDeepest) +
                                      " deep");
  }
  if (!parsed.is_object()) return absl::InvalidArgumentError("the body is not a JSON object");
  return parsed;
}

}  // namespace linserve
