#include "http/connections.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>

namespace linserve {
namespace {

using Lookup = int (*)(int, sockaddr*, socklen_t*);  // getsockname() or getpeername()

// -1 if there is none.
int PortOf(int descriptor, Lookup lookup) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (lookup(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return -1;
  if (storage.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  }
  if (storage.ss_family != AF_INET6) return -1;
  return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
}

}  // namespace

void HangUp(int port) {
  constexpr rlim_t kMost = 1 << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const int end = static_cast<int>(std::min(limit.rlim_cur, kMost));
  for (int descriptor = 0; descriptor < end; ++descriptor) {
    if (PortOf(descriptor, ::getpeername) < 0 || PortOf(descriptor, ::getsockname) != port)
      continue;
    ::shutdown(descriptor, SHUT_RDWR);
  }
}

}  // namespace linserve
