#include "core/system/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <string_view>

namespace linserve {

bool IsLoopback(const std::string& host) {
  if (host == "localhost" || host == "::1" || host == "[::1]") return true;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool IsLoopbackTarget(const std::string& target) {
  std::string_view rest = target;
  if (rest.starts_with("unix:") || rest.starts_with("unix-abstract:")) return true;
  for (const std::string_view scheme : {"dns:", "ipv4:", "ipv6:"}) {
    if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  }
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of('/')));
  const size_t colon = rest.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos;
  const std::string host(has_port ? rest.substr(0, colon) : rest);
  return IsLoopback(host) || host == "0.0.0.0" || host == "[::]";
}

}  // namespace linserve
