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
  std::string fault;
  try {
    parsed = json::parse(text, keep);
    if (!parsed.is_object()) fault = "is not a JSON object";
  } catch (const json::parse_error& error) {
    fault = "is not JSON: a syntax error at byte " + std::to_string(error.byte);
  } catch (const json::exception&) {
    fault = "holds a number that is too large";
  }
  if (too_deep) fault = "is nested more than " + std::to_string(kDeepest) + " deep";
  if (!fault.empty()) return absl::InvalidArgumentError("the body " + fault);
  return parsed;
}

}  // namespace linserve
