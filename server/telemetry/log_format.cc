#include "telemetry/log_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kSeverities = {"DEBUG", "INFO", "WARNING", "ERROR"};

std::string_view Name(LogLevel level) { return kSeverities[static_cast<size_t>(level)]; }

// Writes RFC 3339 with microseconds.
std::string Timestamp(LogTime time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

// Writes JSON. What a caller sent may not be UTF-8; a log line must come out all the same.
std::string Dump(const Json& json, bool ensure_ascii) {
  return json.dump(-1, ' ', ensure_ascii, Json::error_handler_t::replace);
}

bool IsPlain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '\\' && c != '=';
  });
}

std::string HumanValue(const std::string& text) {
  const std::string_view shown = Shown(text);
  return IsPlain(shown) ? std::string(shown) : Dump(shown, /*ensure_ascii=*/true);
}
std::string HumanValue(int64_t value) { return std::to_string(value); }
std::string HumanValue(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};  // as short as it can be
}
std::string HumanValue(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string_view Shown(const std::string& text) {
  constexpr size_t kMostBytes = 2 << 10;
  return CutAtCharacter(text, kMostBytes);
}

std::string FormatHuman(LogTime time, LogLevel level, std::string_view message,
                        absl::Span<const LogField> fields) {
  std::string line = absl::StrFormat("%s %-7s %s", Timestamp(time), Name(level), message);
  for (const LogField& field : fields) {
    const auto text = std::visit([](const auto& value) { return HumanValue(value); }, field.value);
    line.append(" ").append(field.key).append("=").append(text);
  }
  return line;
}

std::string FormatJson(LogTime time, LogLevel level, std::string_view message,
                       absl::Span<const LogField> fields) {
  Json json = {{"time", Timestamp(time)}, {"severity", Name(level)}, {"message", message}};
  SetFields(json, fields);
  return Dump(json, /*ensure_ascii=*/false);
}

}  // namespace linserve
