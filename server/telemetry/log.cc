#include "telemetry/log.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>

#include "core/threads/guarded.h"
#include "telemetry/log_format.h"

namespace linserve {
namespace {

std::atomic<LogLevel> least = LogLevel::kInfo;
std::atomic<LogFormat> log_format = LogFormat::kHuman;
std::atomic<std::FILE*> unalarming = stderr;  // where events below a warning go

void LogFailure(std::string_view work, const absl::Status& failure) {
  Log(LogLevel::kError, "work failed",
      {{"work", std::string(work)}, {"error", failure.ToString()}});
}

}  // namespace

void LogOptions::Bind(OptionTable& table) {
  table.Choice("log_format", format, {"human", "json"},
               "How the log is written, one line an event");
  table.Choice("log_level", level, {"debug", "info", "warning", "error"},
               "Which events are logged; debug logs every request");
  table.Live();
}

void ConfigureLog(const LogOptions& options) {
  log_format = options.format;
  least = options.level;
  unalarming = stdout;
  ReportFailuresTo(LogFailure);
}

void SetLogLevel(LogLevel level) { least = level; }

bool Logs(LogLevel level) { return level >= least; }

void Log(LogLevel level, std::string_view message, absl::Span<const LogField> fields) {
  if (!Logs(level)) return;
  const auto format = log_format == LogFormat::kJson ? FormatJson : FormatHuman;
  const std::string line = format(std::chrono::system_clock::now(), level, message, fields) + "\n";
  // One call writes the line, so that lines of several threads do not mix. Where it cannot be
  // written, there is nobody to tell.
  std::FILE* const stream = level < LogLevel::kWarning ? unalarming.load() : stderr;
  std::fwrite(line.data(), 1, line.size(), stream);
  std::fflush(stream);
}

LogLevel InfoAtMostSoOften() {
  constexpr int kMost = 50;
  static std::atomic<int64_t> second = 0;
  static std::atomic<int> lines = 0;
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::steady_clock::now().time_since_epoch())
                          .count();
  if (second.exchange(now) != now) lines = 0;
  return ++lines <= kMost ? LogLevel::kInfo : LogLevel::kDebug;
}

}  // namespace linserve
