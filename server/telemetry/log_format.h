#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "telemetry/log.h"

namespace linserve {

using LogTime = std::chrono::system_clock::time_point;

// Formats one event as one line, without its end. Whatever the fields hold, it stays one line, and
// what they hold cannot pass for another field or move a terminal's cursor.
std::string FormatHuman(LogTime time, LogLevel level, std::string_view message,
                        std::initializer_list<LogField> fields);
std::string FormatJson(LogTime time, LogLevel level, std::string_view message,
                       std::initializer_list<LogField> fields);

// Sets each field in an object of nlohmann's.
template <typename Json>
void SetFields(Json& object, std::initializer_list<LogField> fields) {
  for (const LogField& field : fields) {
    std::visit([&](const auto& value) { object[std::string(field.key)] = value; }, field.value);
  }
}

}  // namespace linserve
