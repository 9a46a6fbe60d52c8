#include "client/commands/target.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"

namespace linserve {

std::string TargetFault(const std::string& target) {
  std::string_view addresses = target;
  if (addresses.starts_with("http://") || addresses.starts_with("https://")) {
    return target + ": expected HOST:PORT of gRPC, without http";
  }
  const std::string_view scheme = addresses.substr(0, addresses.find(':'));
  const bool is_network = scheme == "dns" || scheme == "ipv4" || scheme == "ipv6";
  const bool is_other =
      scheme.starts_with("unix") || addresses.find(":/") != std::string_view::npos;
  if (is_other && !is_network) return "";
  if (is_network) addresses.remove_prefix(std::min(addresses.size(), scheme.size() + 1));
  addresses.remove_prefix(addresses.rfind('/') + 1);  // npos + 1 is 0
  const std::vector<std::string> all = absl::StrSplit(std::string(addresses), ',');
  for (const std::string& address : all) {
    const size_t colon = address.rfind(':');
    const bool has_port = colon != std::string::npos && colon + 1 < address.size() &&
                          address.find(']', colon) == std::string::npos;
    if (!has_port) return target + ": the port is missing, expected HOST:PORT, such as HOST:8500";
  }
  return "";
}

}  // namespace linserve
