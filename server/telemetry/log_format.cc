#include "telemetry/log_format.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace linserve {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kLevels = {"DEBUG", "INFO", "WARN", "ERROR"};

std::string_view Name(LogLevel level) { return kLevels[static_cast<size_t>(level)]; }

// RFC 3339 with microseconds.
std::string Timestamp(LogTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::floor<std::chrono::microseconds>(time - seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), micros.count());
}

// What a caller sent may be no UTF-8; a log line must come out all the same.
std::string Dump(const Json& json, bool ensure_ascii) {
  return json.dump(-1, ' ', ensure_ascii, Json::error_handler_t::replace);
}

bool IsPlain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '\\' && c != '=';
  });
}

std::string HumanValue(const std::string& text) {
  return IsPlain(text) ? text : Dump(text, /*ensure_ascii=*/true);
}
std::string HumanValue(int64_t value) { return fmt::format("{}", value); }
std::string HumanValue(double value) { return fmt::format("{}", value); }
std::string HumanValue(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string FormatHuman(LogTime time, LogLevel level, std::string_view event,
                        std::initializer_list<LogField> fields) {
  std::string line = fmt::format("{} {:<5} {}", Timestamp(time), Name(level), event);
  for (const LogField& field : fields) {
    const auto text = std::visit([](const auto& value) { return HumanValue(value); }, field.value);
    line += fmt::format(" {}={}", field.key, text);
  }
  return line;
}

std::string FormatJson(LogTime time, LogLevel level, std::string_view event,
                       std::initializer_list<LogField> fields) {
  Json json = {{"time", Timestamp(time)}, {"level", Name(level)}, {"event", event}};
  SetFields(json, fields);
  return Dump(json, /*ensure_ascii=*/false);
}

}  // namespace linserve
