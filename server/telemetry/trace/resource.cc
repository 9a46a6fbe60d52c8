#include "telemetry/trace/resource.h"

#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "core/strings/quote.h"
#include "telemetry/log.h"
#include "telemetry/trace/trace_context.h"

namespace linserve {
namespace {

// Returns a text with %XX replaced by the bytes that they stand for; nullopt if one stands for
// none.
std::optional<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    uint8_t byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

// Returns the name by which OpenTelemetry knows the processors' architecture.
std::string ArchitectureOf(const utsname& system) {
  const std::string_view machine = system.machine;
  if (machine == "x86_64") return "amd64";
  return machine == "aarch64" ? "arm64" : std::string(machine);
}

// Returns a random UUID (RFC 9562, version 4).
std::string NewUuid() {
  std::string id = NewTraceId();
  id[12] = '4';
  id[16] = "89ab"[id[16] % 4];
  for (const size_t dash : {8, 13, 18, 23}) id.insert(dash, "-");
  return id;
}

}  // namespace

absl::StatusOr<Resource> ParseAttributes(const std::string& text) {
  Resource attributes;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string key(absl::StripAsciiWhitespace(part.substr(0, equals)));
    std::string encoded = part.substr(std::min(equals + 1, part.size()));
    absl::StripAsciiWhitespace(&encoded);
    const auto value = Decoded(encoded);
    if (equals == part.size() || key.empty() || !value) {
      return absl::InvalidArgumentError(
          "expected key=value, with commas between them and %XX for other bytes, at " +
          Quoted(part));
    }
    attributes[key] = *value;
  }
  return attributes;
}

Resource DescribeProcess(const std::string& version, const std::string& given,
                         const std::string& service_name) {
  Resource resource = {{"service.name", "linserve"},       {"service.version", version},
                       {"service.instance.id", NewUuid()}, {"telemetry.sdk.language", "cpp"},
                       {"telemetry.sdk.name", "linserve"}, {"telemetry.sdk.version", version}};
  utsname system{};
  if (uname(&system) == 0) {
    resource["host.name"] = system.nodename;
    resource["host.arch"] = ArchitectureOf(system);
    resource["os.type"] = "linux";
  }
  if (const auto attributes = ParseAttributes(given); attributes.ok()) {
    for (const auto& [key, value] : *attributes) resource[key] = value;
  } else {
    Log(LogLevel::kWarning, "OTEL_RESOURCE_ATTRIBUTES is overlooked",
        {{"error", std::string(attributes.status().message())}});
  }
  if (!service_name.empty()) resource["service.name"] = service_name;
  return resource;
}

}  // namespace linserve
