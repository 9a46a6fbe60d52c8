#include "rpc/guards/connections.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <utility>

#include "core/system/endpoint.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

constexpr size_t kHeader = 9;  // bytes that begin a frame

int OpenNothing() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

// Returns whether the descriptor is of a connection that came by the Unix socket at the path.
bool CameBy(int descriptor, const std::string& path) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::getsockname(descriptor, generic, &size) != 0 || address.sun_family != AF_UNIX) return false;
  if (path !=
      std::string_view(address.sun_path, ::strnlen(address.sun_path, sizeof(address.sun_path))))
    return false;
  size = sizeof(address);
  return ::getpeername(descriptor, generic, &size) == 0;  // it is not the listener
}

// Counts the frames that reset a call, of a part of what came by a connection.
int64_t ResetsIn(std::string_view bytes) {
  constexpr std::string_view kReset("\0\0\4\3\0", 5);  // begins such a frame
  int64_t resets = 0;
  for (size_t at = bytes.find(kReset); at != std::string_view::npos;
       at = bytes.find(kReset, at + kReset.size())) {
    ++resets;
  }
  return resets;
}

// Returns where the frame ends whose header begins at `at`, if it is a CONTINUATION of the stream
// (four bytes) after which there are more, and not a short one; else 0.
size_t EndOfContinuation(std::string_view bytes, size_t at, std::string_view stream) {
  constexpr size_t kLeast = 256;
  constexpr size_t kMost = 16 << 10;
  constexpr unsigned char kContinuation = 9;
  constexpr unsigned char kLast = 4;
  if (at + kHeader > bytes.size()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
  if (byte(3) != kContinuation || (byte(4) & kLast) != 0) return 0;
  if (bytes.substr(at + 5, stream.size()) != stream) return 0;
  const size_t length = size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | size_t{byte(2)};
  return length >= kLeast && length <= kMost ? at + kHeader + length : 0;
}

// Returns whether a part of what came by a connection has three CONTINUATIONs in a row that have
// more after them: 48 KiB of headers, if they are as long as they may be, of which no caller may
// send more than 16.
bool HasEndlessHeaders(std::string_view bytes) {
  constexpr int kFrames = 3;
  for (size_t begin = 0; begin + kHeader <= bytes.size(); ++begin) {
    const std::string_view stream = bytes.substr(begin + 5, 4);
    // Streams of callers have odd numbers of 31 bits. Tensors may look like frames otherwise.
    if ((stream[0] & 0x80) != 0 || (stream[3] & 1) == 0) continue;
    size_t at = begin;
    for (int frame = 0; frame < kFrames; ++frame) {
      at = EndOfContinuation(bytes, at, stream);
      if (at == 0) break;
    }
    if (at != 0) return true;
  }
  return false;
}

// Says that whoever is at the other end of a connection is told at once when it is closed. Returns
// false if that was said before. gRPC never says it, so that this marks what has been ended.
bool ResetWhenClosed(int connection) {
  linger reset{};
  socklen_t size = sizeof(reset);
  if (::getsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, &size) != 0) return false;
  if (reset.l_onoff != 0) return false;
  reset = {.l_onoff = 1, .l_linger = 0};
  return ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0;
}

}  // namespace

Connections::Connections(int port, std::string unix_socket)
    : port_(port),
      unix_socket_(std::move(unix_socket)),
      descriptors_(::opendir("/proc/self/fd")),
      nothing_(OpenNothing()),
      copy_(OpenNothing()),
      worst_(OpenNothing()),
      unread_(size_t{64} << 10) {}

Connections::~Connections() {
  if (descriptors_ != nullptr) ::closedir(descriptors_);
  for (const int descriptor : {nothing_, copy_, worst_}) ::close(descriptor);
}

template <typename Visit>
void Connections::ForEach(const Visit& visit) {
  if (descriptors_ == nullptr) return;
  ::rewinddir(descriptors_);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else reads this directory
  while (const dirent* entry = ::readdir(descriptors_)) {
    // The copied descriptor goes on naming the connection, whatever gRPC does with its own
    // meanwhile.
    const std::string_view digits(entry->d_name);
    int descriptor = -1;  // as it stays for "." and ".."
    std::from_chars(digits.data(), digits.data() + digits.size(), descriptor);
    if (descriptor < 0 || descriptor == copy_ || descriptor == worst_) continue;
    if (::dup3(descriptor, copy_, O_CLOEXEC) < 0) continue;
    if (const auto name = NameOf(copy_)) visit(*name, copy_);
  }
  ::dup3(nothing_, copy_, O_CLOEXEC);
}

std::optional<std::string> Connections::NameOf(int descriptor) const {
  if (const auto peer = PeerOf(descriptor)) {
    const auto end = LocalEndOf(descriptor);
    return end && end->port == port_ ? std::optional(peer->ToString()) : std::nullopt;
  }
  const bool local = !unix_socket_.empty() && CameBy(descriptor, unix_socket_);
  return local ? std::optional(unix_socket_) : std::nullopt;
}

std::map<std::string, int64_t> Connections::BytesReceived() {
  std::map<std::string, int64_t> received;
  ForEach([&](const std::string& name, int connection) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
    received[name] = static_cast<int64_t>(info.tcpi_bytes_received);
  });
  return received;
}

int Connections::HangUp(const std::set<std::string>& names, std::string_view why) {
  int ended = 0;
  ForEach([&](const std::string& name, int connection) {
    if (names.contains(name)) ended += End(name, connection, why);
  });
  return ended;
}

int Connections::HangUpOnMostResets(std::string_view why) {
  int64_t most = 0;
  ForEach([&](const std::string& name, int connection) {
    if (name != unix_socket_) return;
    const int64_t resets = ResetsIn(Unread(connection));
    if (resets > most && ::dup3(connection, worst_, O_CLOEXEC) >= 0) most = resets;
  });
  const int ended = most > 0 ? End(unix_socket_, worst_, why) : 0;
  ::dup3(nothing_, worst_, O_CLOEXEC);
  return ended;
}

int Connections::HangUpOnEndlessHeaders() {
  int ended = 0;
  ForEach([&](const std::string& name, int connection) {
    if (!HasEndlessHeaders(Unread(connection))) return;
    ended += End(name, connection, "sends headers without an end");
  });
  return ended;
}

void Connections::HangUpOnAll() {
  ForEach([&](const std::string&, int connection) {
    ::shutdown(connection, SHUT_RDWR);
    Drain(connection);
  });
}

int Connections::End(const std::string& name, int connection, std::string_view why) {
  const bool first = ResetWhenClosed(connection);
  ::shutdown(connection, SHUT_RDWR);
  Drain(connection);
  if (!first) return 0;
  Log(LogLevel::kWarning, "hung up on a caller", {{"peer", name}, {"because", std::string(why)}});
  return 1;
}

void Connections::Drain(int connection) {
  constexpr int kMost = 256;  // 16 MiB: no socket holds more
  for (int i = 0; i < kMost; ++i) {
    if (::recv(connection, unread_.data(), unread_.size(), MSG_DONTWAIT) <= 0) return;
  }
}

std::string_view Connections::Unread(int connection) {
  const ssize_t size = ::recv(connection, unread_.data(), unread_.size(), MSG_PEEK | MSG_DONTWAIT);
  return {unread_.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

}  // namespace linserve
