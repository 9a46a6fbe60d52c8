#include "rpc/guards/channelz.h"

#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "absl/strings/escaping.h"

namespace linserve {
namespace {

using Json = nlohmann::json;

Json Owned(char* text) {
  const std::unique_ptr<char, void (*)(void*)> owner(text, gpr_free);
  return text == nullptr ? Json() : Json::parse(text, nullptr, false);
}

// Reads a 64-bit number: JSON has it as a string, and leaves a zero out.
int64_t Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return 0;
  const auto& text = found->get_ref<const std::string&>();
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Returns the identifiers of a listing that comes in pages; `page` returns the page that begins
// with an identifier.
template <typename Page>
std::vector<int64_t> Listed(const char* entries, const char* identifier, Page page) {
  std::vector<int64_t> listed;
  while (true) {
    const Json answer = page(listed.empty() ? 0 : listed.back() + 1);
    const auto found = answer.find(entries);
    if (found == answer.end() || found->empty()) return listed;
    for (const Json& entry : *found) {
      const auto reference = entry.find("ref");
      listed.push_back(Number(reference == entry.end() ? entry : *reference, identifier));
    }
    if (answer.value("end", false)) return listed;
  }
}

std::vector<int64_t> SocketsOfServers() {
  std::vector<int64_t> all;
  for (const int64_t server : Listed("server", "serverId", [](int64_t first) {
         return Owned(grpc_channelz_get_servers(first));
       })) {
    const auto sockets = Listed("socketRef", "socketId", [server](int64_t first) {
      return Owned(grpc_channelz_get_server_sockets(server, first, 0));
    });
    all.insert(all.end(), sockets.begin(), sockets.end());
  }
  return all;
}

int64_t OpenCalls(const Json& socket) {
  const auto data = socket.find("data");
  if (data == socket.end()) return 0;
  return Number(*data, "streamsStarted") - Number(*data, "streamsSucceeded") -
         Number(*data, "streamsFailed");
}

// Returns the other end of a connection; nullopt for a Unix socket, which has a name of a file.
std::optional<Endpoint> PeerOf(const Json& socket) {
  const Json::json_pointer path("/remote/tcpip_address");
  if (!socket.contains(path)) return std::nullopt;
  const Json& address = socket[path];
  Endpoint peer{.address = {}, .port = address.value("port", 0)};
  if (!absl::Base64Unescape(address.value("ip_address", ""), &peer.address)) return std::nullopt;
  return peer;
}

bool IsLocal(const Json& socket) {
  return socket.contains(Json::json_pointer("/remote/uds_address"));
}

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

}  // namespace

Floods ConnectionsWithMoreCallsThan(int64_t calls) {
  Floods floods;
  for (const int64_t identifier : SocketsOfServers()) {
    const Json answer = Owned(grpc_channelz_get_socket(identifier));
    const auto socket = answer.find("socket");
    if (socket == answer.end() || OpenCalls(*socket) <= calls) continue;
    if (auto peer = PeerOf(*socket)) {
      floods.peers.push_back(*std::move(peer));
    } else if (IsLocal(*socket)) {
      floods.local = true;
    }
  }
  return floods;
}

Connections::Connections()
    : descriptors_(::opendir("/proc/self/fd")),
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
    const std::string_view name(entry->d_name);
    int descriptor = -1;  // as it stays for "." and ".."
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor < 0 || descriptor == copy_ || descriptor == worst_) continue;
    if (::dup3(descriptor, copy_, O_CLOEXEC) >= 0) visit(copy_);
  }
  ::dup3(nothing_, copy_, O_CLOEXEC);
}

int Connections::HangUp(const Endpoint& peer) {
  int ended = 0;
  ForEach([&](int connection) {
    if (PeerOf(connection) == peer && ::shutdown(connection, SHUT_RDWR) == 0) ++ended;
  });
  return ended;
}

bool Connections::HangUpLocal(const std::string& path) {
  int64_t most = 0;
  ForEach([&](int connection) {
    if (!CameBy(connection, path)) return;
    const int64_t resets = UnreadResets(connection);
    if (resets > most && ::dup3(connection, worst_, O_CLOEXEC) >= 0) most = resets;
  });
  const bool ended = most > 0 && ::shutdown(worst_, SHUT_RDWR) == 0;
  ::dup3(nothing_, worst_, O_CLOEXEC);
  return ended;
}

void Connections::HangUpOnAll(int port, const std::string& path) {
  ForEach([&](int connection) {
    const auto end = PeerOf(connection) ? LocalEndOf(connection) : std::nullopt;
    if ((end && end->port == port) || (!path.empty() && CameBy(connection, path))) {
      ::shutdown(connection, SHUT_RDWR);
    }
  });
}

// Counts the resets among the unread bytes of a connection.
int64_t Connections::UnreadResets(int descriptor) {
  const ssize_t size = ::recv(descriptor, unread_.data(), unread_.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size <= 0) return 0;
  constexpr std::string_view kReset("\0\0\4\3\0", 5);  // begins a frame that resets a call
  const std::string_view bytes(unread_.data(), static_cast<size_t>(size));
  int64_t resets = 0;
  for (size_t at = bytes.find(kReset); at != std::string_view::npos;
       at = bytes.find(kReset, at + kReset.size())) {
    ++resets;
  }
  return resets;
}

}  // namespace linserve
