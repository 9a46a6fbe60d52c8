#include "program/serve/config.h"

#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"

namespace linserve {
namespace {

// Puts the text into comment lines of at most kWidth characters.
std::string Comment(const std::string& indent, const std::string& text) {
  constexpr size_t kWidth = 100;
  const std::string begin = indent + "//";
  std::string lines;
  std::string line = begin;
  std::istringstream words(text);
  for (std::string word; words >> word; line += " " + word) {
    if (line.size() + 1 + word.size() <= kWidth) continue;
    lines += line + "\n";
    line = begin;
  }
  return lines + line + "\n";
}

// Reads "http://HOST:PORT,https://HOST", or "*".
absl::StatusOr<std::vector<std::string>> ParseOrigins(const std::string& text) {
  std::vector<std::string> origins;
  std::istringstream parts(text);
  for (std::string origin; std::getline(parts, origin, ',');) {
    absl::StripAsciiWhitespace(&origin);
    const size_t host = origin.find("://");
    const bool is_one = host != std::string::npos && host + 3 < origin.size() &&
                        origin.find('/', host + 3) == std::string::npos &&
                        origin.find(' ') == std::string::npos;
    if (!is_one && text != "*") {
      return absl::InvalidArgumentError(
          "expected origins such as https://app.example:3000 with "
          "commas between them, or *");
    }
    origins.push_back(origin);
  }
  return origins;
}

}  // namespace

void HttpConfig::Bind(OptionTable& table) {
  all.Bind(table, "http_address",
           "HOST:PORT of REST, /livez, /readyz, /metrics and the status page");
  table.Parsed(
      "metrics_address",
      [this](const std::string& text) -> absl::Status {
        pages.reset();
        if (text.empty()) return absl::OkStatus();
        auto parsed = ListenAddress::Parse(text);
        if (!parsed.ok()) return parsed.status();
        pages = *std::move(parsed);
        return absl::OkStatus();
      },
      [this] { return pages ? pages->ToString() : ""; },
      "HOST:PORT of /metrics and the status page, apart from the rest of HTTP, with /livez "
      "and /readyz once more; empty: on http_address");
  table.Duration("http_keep_alive_seconds", keep_alive, 1, 86400,
                 "How long a connection over HTTP stays open between requests, as callers are "
                 "told. An idle one takes no thread. With " +
                     std::to_string(HttpLimits().connections) +
                     " of them, or a quarter of the descriptors, the one idle for longest makes "
                     "room for another");
  table.Parsed(
      "http_cors_origins",
      [this](const std::string& text) -> absl::Status {
        auto parsed = ParseOrigins(text);
        if (!parsed.ok()) return parsed.status();
        cors_origins = *std::move(parsed);
        return absl::OkStatus();
      },
      [this] {
        std::string text;
        for (const std::string& origin : cors_origins) text += (text.empty() ? "" : ",") + origin;
        return text;
      },
      "Origins whose pages may call from a browser, such as https://app.example, with commas "
      "between them; *: all; empty: none");
}

void Config::Bind(OptionTable& table) {
  table.Section("The models");
  repository.Bind(table);
  table.Flag(
      "exit_on_error", exit_on_error,
      "Whether to end at the start if a model cannot be served, or to serve the others, if there "
      "are any");
  table.Flag("allow_model_control", allow_model_control,
             "Let callers load and unload models (RepositoryModelLoad, RepositoryModelUnload)");
  table.Section("Where callers connect, and who may");
  grpc.BindAddress(table);
  http.Bind(table);
  grpc.access.Bind(table);
  table.Section("What computes");
  devices.Bind(table);
  grpc.BindLimits(table);
  table.Bytes("max_session_bytes_per_caller", max_session_bytes_per_caller, 0, int64_t{1} << 50,
              "How many of max_session_bytes the sessions of one caller may take; 0: half");
  table.Section("The end of the process, and its log");
  table.Duration("drain_delay_seconds", drain_delay, 0, 600,
                 "How long to go on serving after SIGTERM while readiness says no, so that proxies "
                 "and load balancers have seen it before a call is refused");
  table.Live();
  table.Duration("drain_timeout_seconds", drain_timeout, 0, 3600,
                 "How long accepted requests may take after that; what has not ended five seconds "
                 "later, whatever it is, is ended with the process");
  table.Live();
  log.Bind(table);
  trace.Bind(table);
  serving.Bind(table);
}

std::string ToFile(const OptionTable& table, bool comments) {
  std::string file;
  if (comments) {
    file += Comment("",
                    "Every option of `linserve serve` with its default, written by `linserve "
                    "serve --print-config --comments`. A flag (--max-batch-tokens) or a variable "
                    "(LINSERVE_MAX_BATCH_TOKENS) overrides it. Sizes may be written as "
                    "\"4GiB\", times as \"30s\".");
  }
  std::string separator = "{\n";
  for (const OptionTable::Description& option : table.Describe()) {
    file += std::exchange(separator, ",\n");
    if (comments) {
      if (!option.section.empty()) {
        if (!file.ends_with("{\n")) file += "\n";
        file += Comment("  ", option.section + ".") + "\n";
      }
      file += Comment("  ", option.help + (option.choice ? "; " + option.allowed : "") + "." +
                                (option.live ? " SIGHUP applies a change." : ""));
    }
    file += "  \"" + option.name + "\": " + option.current;
  }
  return file + "\n}\n";
}

}  // namespace linserve
