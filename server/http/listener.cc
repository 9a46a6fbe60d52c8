#include "http/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/system/endpoint.h"

namespace linserve {
namespace {

// So much of an answer waits in the kernel at most. Of a buffer that the kernel lets grow to
// megabytes, it tells only when a third is free again: to a slow reader that looks like a stall.
constexpr int kUnsentBytes = 128 << 10;

// REQUIRES: the descriptor is of a socket.
bool ListensOn(int descriptor, const addrinfo& address) {
  const int on = 1;
  const int off = 0;
  // SO_REUSEPORT is not set: with it two servers would share a port without an error.
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) {
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  return ::bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 &&
         ::listen(descriptor, SOMAXCONN) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  std::string reason;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    std::unique_ptr<Listener> listener(
        new Listener(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    if (ListensOn(listener->descriptor_.get(), *address)) return listener;
    reason = std::strerror(errno);
  }
  return absl::UnavailableError(reason);
}

int Listener::port() const {
  const auto end = LocalEndOf(descriptor_.get());
  return end ? end->port : 0;
}

int Listener::Accept() {
  constexpr std::chrono::milliseconds kPause(10);
  while (!closed_) {
    const int connection =
        ::accept4(descriptor_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {
      // For want of a descriptor or of memory, which others will give back, the connection waits.
      if (!closed_ && errno != EINTR && errno != ECONNABORTED) std::this_thread::sleep_for(kPause);
      continue;
    }
    const int on = 1;
    ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ::setsockopt(connection, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof(kUnsentBytes));
    if (!closed_) return connection;
    ::close(connection);
  }
  return -1;
}

void Listener::Close() {
  closed_ = true;
  ::shutdown(descriptor_.get(), SHUT_RDWR);
}

}  // namespace linserve
