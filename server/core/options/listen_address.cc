#include "core/options/listen_address.h"

#include <charconv>
#include <utility>

namespace linserve {

absl::StatusOr<ListenAddress> ListenAddress::Parse(const std::string& text) {
  constexpr int kHighestPort = 65535;
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && colon > 0) {
    ListenAddress address;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, address.port);
    if (parsed.ec == std::errc() && parsed.ptr == end && address.port >= 0 &&
        address.port <= kHighestPort) {
      address.host = text.substr(0, colon);
      if (address.host.starts_with('[') && address.host.ends_with(']')) {
        address.host = address.host.substr(1, address.host.size() - 2);
      }
      return address;
    }
  }
  return absl::InvalidArgumentError("expected HOST:PORT, for example 127.0.0.1:8500");
}

std::string ListenAddress::ToString() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

void ListenAddress::Bind(OptionTable& table, std::string name, std::string help) {
  table.Parsed(
      std::move(name),
      [this](const std::string& text) -> absl::Status {
        auto parsed = Parse(text);
        if (!parsed.ok()) return parsed.status();
        *this = *std::move(parsed);
        return absl::OkStatus();
      },
      [this] { return ToString(); }, std::move(help));
}

}  // namespace linserve
