#include "rpc/guards/listener_check.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>
#include <string_view>

namespace linserve {
namespace {

constexpr std::chrono::seconds kPatience(10);
constexpr std::chrono::seconds kHolds(1);
constexpr int kWaitMs = 500;

// An HTTP/2 connection begins with this, and empty settings follow; anything will do for TLS.
constexpr std::string_view kGreeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

std::string Reachable(const std::string& host) {
  if (host.empty() || host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

// Returns whether the other side answers or hangs up in time.
bool IsAnswered(int connection, const addrinfo& address) {
  // Where nobody accepts, the kernel would try for two minutes to connect.
  const timeval wait{.tv_sec = 0, .tv_usec = 1000 * kWaitMs};
  if (::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) != 0) return false;
  if (::connect(connection, address.ai_addr, address.ai_addrlen) != 0) return false;
  if (::send(connection, kGreeting.data(), kGreeting.size(), MSG_NOSIGNAL) < 0) return true;
  pollfd waiting{connection, POLLIN, 0};
  return ::poll(&waiting, 1, kWaitMs) > 0;
}

}  // namespace

ListenerCheck::ListenerCheck(const std::string& host, int port, Clock& clock)
    : host_(Reachable(host)), port_(port), clock_(clock) {}

bool ListenerCheck::Accepts() {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.Now();
  if (good_ && now - *good_ < kHolds) return true;
  if (Try()) {
    good_ = now;
    failing_.reset();
    return true;
  }
  if (!failing_) failing_ = now;
  return now - *failing_ < kPatience;
}

bool ListenerCheck::Try() const {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host_.c_str(), std::to_string(port_).c_str(), &hints, &found) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  const int connection = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return false;  // no descriptor is left
  const bool answers = IsAnswered(connection, *found);
  ::close(connection);
  return answers;
}

}  // namespace linserve
