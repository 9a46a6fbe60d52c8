#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/types/span.h"
#include "core/options/options.h"

namespace linserve {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
enum class LogFormat : uint8_t { kHuman, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kHuman;

  void Bind(OptionTable& table);
};

// Holds one named value of an event. It is never the content of an input, never a secret.
struct LogField {
  std::string_view key;
  std::variant<std::string, int64_t, double, bool> value;
};

// Sets how the log of a server is written, and that it holds what RunGuarded() reports. From then
// on lines go to standard output, and those of warnings and errors to standard error; before, in
// programs whose output is their result, all go to standard error. Call it once, before other
// threads start.
void ConfigureLog(const LogOptions& options);

// Changes which events are logged. Thread-safe.
void SetLogLevel(LogLevel level);

// Returns whether events of the level are logged: if not, what they would say need not be made.
bool Logs(LogLevel level);

// Logs an event. Thread-safe. `message` is a fixed, greppable phrase ("request finished"); what
// varies goes into fields. Writes {"time": RFC 3339 with microseconds, "severity", "message",
// fields...} as JSON, or `time severity message key=value ...` for people. README.md here lists the
// keys.
void Log(LogLevel level, std::string_view message, absl::Span<const LogField> fields = {});

// Returns the level for an event that callers can cause at will: kInfo for the first fifty in a
// second, then kDebug. The metrics count all of them.
LogLevel InfoAtMostSoOften();

}  // namespace linserve
