#include "telemetry/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "telemetry/log_format.h"

namespace linserve {
namespace {

struct Logger {
  LogFormat format = LogFormat::kHuman;
  spdlog::logger logger{"linserve", std::make_shared<spdlog::sinks::stderr_sink_mt>()};

  Logger() { logger.set_pattern("%v"); }
};

// Never destroyed: threads may log while the process exits.
Logger& TheLogger() {
  static auto* const logger = new Logger;
  return *logger;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void ConfigureLog(const LogOptions& options) {
  TheLogger().format = options.format;
  TheLogger().logger.set_level(SpdlogLevel(options.level));
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  Logger& log = TheLogger();
  const auto spdlog_level = SpdlogLevel(level);
  if (!log.logger.should_log(spdlog_level)) return;
  const auto format = log.format == LogFormat::kJson ? FormatJson : FormatHuman;
  log.logger.log(spdlog_level, format(std::chrono::system_clock::now(), level, event, fields));
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
