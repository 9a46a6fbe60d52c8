#include "rpc/channelz.h"

#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
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

// JSON of 64-bit numbers has them as strings, and none for a zero.
int64_t Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return 0;
  const auto& text = found->get_ref<const std::string&>();
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The identifiers of a listing that comes in pages; `page` is the one that begins with an
// identifier.
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

// None for a Unix socket.
std::optional<Endpoint> PeerOf(const Json& socket) {
  const Json::json_pointer path("/remote/tcpip_address");
  if (!socket.contains(path)) return std::nullopt;
  const Json& address = socket[path];
  Endpoint peer{.address = {}, .port = address.value("port", 0)};
  if (!absl::Base64Unescape(address.value("ip_address", ""), &peer.address)) return std::nullopt;
  return peer;
}

}  // namespace

std::vector<Endpoint> PeersWithMoreCallsThan(int64_t calls) {
  std::vector<Endpoint> peers;
  for (const int64_t identifier : SocketsOfServers()) {
    const Json answer = Owned(grpc_channelz_get_socket(identifier));
    const auto socket = answer.find("socket");
    if (socket == answer.end() || OpenCalls(*socket) <= calls) continue;
    if (auto peer = PeerOf(*socket)) peers.push_back(*std::move(peer));
  }
  return peers;
}

Connections::Connections()
    : descriptors_(::opendir("/proc/self/fd")),
      nothing_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      copy_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Connections::~Connections() {
  if (descriptors_ != nullptr) ::closedir(descriptors_);
  ::close(nothing_);
  ::close(copy_);
}

int Connections::HangUp(const Endpoint& peer) {
  if (descriptors_ == nullptr) return 0;
  int ended = 0;
  ::rewinddir(descriptors_);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else reads this directory
  while (const dirent* entry = ::readdir(descriptors_)) {
    // A copy goes on naming the connection, whatever gRPC does with its descriptor meanwhile.
    const std::string_view name(entry->d_name);
    int descriptor = -1;  // as it stays for "." and ".."
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor < 0 || descriptor == copy_ || ::dup3(descriptor, copy_, O_CLOEXEC) < 0) continue;
    if (PeerOf(copy_) == peer && ::shutdown(copy_, SHUT_RDWR) == 0) ++ended;
  }
  ::dup3(nothing_, copy_, O_CLOEXEC);
  return ended;
}

}  // namespace linserve
