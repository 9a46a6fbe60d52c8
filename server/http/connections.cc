#include "http/connections.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>

#include "core/endpoint.h"

namespace linserve {

void HangUp(int port) {
  constexpr rlim_t kMost = 1 << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const int end = static_cast<int>(std::min(limit.rlim_cur, kMost));
  for (int descriptor = 0; descriptor < end; ++descriptor) {
    if (!PeerOf(descriptor)) continue;
    const auto ours = LocalEndOf(descriptor);
    if (ours && ours->port == port) ::shutdown(descriptor, SHUT_RDWR);
  }
}

}  // namespace linserve
