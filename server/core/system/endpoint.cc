#include "core/system/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>

namespace linserve {
namespace {

std::string Bytes(const void* begin, size_t count) {
  return {static_cast<const char*>(begin), count};
}

using Lookup = int (*)(int, sockaddr*, socklen_t*);  // getsockname() or getpeername()

std::optional<Endpoint> EndOf(int connection, Lookup lookup) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (lookup(connection, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return std::nullopt;
  }
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    return Endpoint{Bytes(&v4.sin_addr, 4), ntohs(v4.sin_port)};
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  // A listener for both families sees IPv4 addresses as mapped IPv6 ones; gRPC names them by their
  // last four bytes.
  const int skipped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? 12 : 0;
  return Endpoint{Bytes(v6.sin6_addr.s6_addr + skipped, 16 - skipped), ntohs(v6.sin6_port)};
}

}  // namespace

std::string Endpoint::Machine() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.size() == 16 ? AF_INET6 : AF_INET, address.data(), text.data(), text.size());
  return text.data();
}

std::string Endpoint::ToString() const {
  return (address.size() == 16 ? "[" + Machine() + "]" : Machine()) + ":" + std::to_string(port);
}

std::optional<Endpoint> PeerOf(int connection) { return EndOf(connection, ::getpeername); }

std::optional<Endpoint> LocalEndOf(int connection) { return EndOf(connection, ::getsockname); }

}  // namespace linserve
