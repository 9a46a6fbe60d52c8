#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <variant>

#include "absl/types/span.h"
#include "telemetry/log.h"

namespace linserve {

using LogTime = std::chrono::system_clock::time_point;

// Returns what is shown of a value: of a text 2 KiB at most, for what libraries say repeats what
// callers have sent, whatever its length.
std::string_view Shown(const std::string& text);
template <typename T>
T Shown(T value) {
  return value;
}

// Formats one event as one line, without its end. Whatever the fields hold, it stays one line, and
// what they hold cannot pass for another field or move a terminal's cursor.
std::string FormatHuman(LogTime time, LogLevel level, std::string_view message,
                        absl::Span<const LogField> fields);
std::string FormatJson(LogTime time, LogLevel level, std::string_view message,
                       absl::Span<const LogField> fields);

// Sets each field in an object of nlohmann's.
template <typename Json>
void SetFields(Json& object, absl::Span<const LogField> fields) {
  for (const LogField& field : fields) {
    const auto set = [&](const auto& value) { object[std::string(field.key)] = Shown(value); };
    std::visit(set, field.value);
  }
}

}  // namespace linserve
