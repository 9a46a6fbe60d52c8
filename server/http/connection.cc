#include "http/connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <utility>

namespace linserve {
namespace {

int AtMostInt(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

}  // namespace

Connection::Connection(Descriptor descriptor)
    : descriptor_(std::move(descriptor)), tls_(nullptr, SSL_free) {}

Connection::~Connection() = default;

bool Connection::Secure(SSL_CTX& context) {
  tls_.reset(SSL_new(&context));
  if (!tls_ || SSL_set_fd(tls_.get(), descriptor()) != 1) return false;
  // Each write may end early, so that what goes slowly is seen to go. An idle connection has no
  // buffers.
  SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
  SSL_set_accept_state(tls_.get());
  return true;
}

bool Connection::handshaking() const { return tls_ && SSL_is_init_finished(tls_.get()) == 0; }

Connection::Attempt Connection::TryRead(char* to, size_t most) {
  return tls_ ? OfTls(SSL_read(tls_.get(), to, AtMostInt(most)))
              : OfSocket(::recv(descriptor(), to, most, 0), POLLIN);
}

bool Connection::Ready(short events, TimePoint deadline) const {
  using std::chrono::milliseconds;
  while (true) {
    const auto left =
        std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{descriptor(), events, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, INT_MAX)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

Connection::Attempt Connection::TryWrite(const char* from, size_t size) {
  return tls_ ? OfTls(SSL_write(tls_.get(), from, AtMostInt(size)))
              : OfSocket(::send(descriptor(), from, size, MSG_NOSIGNAL), POLLOUT);
}

void Connection::End() {
  if (tls_) SSL_shutdown(tls_.get());
  ERR_clear_error();
  ::shutdown(descriptor(), SHUT_WR);
}

Connection::Attempt Connection::TryOverlook() {
  std::array<char, 4096> overlooked;
  return OfSocket(::recv(descriptor(), overlooked.data(), overlooked.size(), 0), POLLIN);
}

Connection::Attempt Connection::OfSocket(ssize_t result, short wanted) {
  const bool again = result < 0 && (errno == EAGAIN || errno == EINTR);
  return {result, again ? wanted : short{0}};
}

Connection::Attempt Connection::OfTls(int result) const {
  if (result > 0) return {result, 0};
  const int error = SSL_get_error(tls_.get(), result);
  ERR_clear_error();  // of this thread, for the next one that looks
  if (error == SSL_ERROR_WANT_READ) return {-1, POLLIN};
  if (error == SSL_ERROR_WANT_WRITE) return {-1, POLLOUT};
  return {error == SSL_ERROR_ZERO_RETURN ? 0 : -1, 0};
}

}  // namespace linserve
