#include "rpc/guards/channelz.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/escaping.h"
#include "core/system/endpoint.h"

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

}  // namespace

std::vector<ConnectionFigures> FiguresOfConnections(const std::string& unix_socket) {
  std::vector<ConnectionFigures> figures;
  for (const int64_t identifier : SocketsOfServers()) {
    const Json answer = Owned(grpc_channelz_get_socket(identifier));
    const auto socket = answer.find("socket");
    if (socket == answer.end()) continue;
    const auto peer = PeerOf(*socket);
    const auto data = socket->find("data");
    if (data == socket->end() || (!peer && !IsLocal(*socket))) continue;
    const int64_t calls = Number(*data, "streamsStarted");
    figures.push_back(
        {.caller = peer ? peer->ToString() : unix_socket,
         .open_calls = calls - Number(*data, "streamsSucceeded") - Number(*data, "streamsFailed"),
         .calls = calls,
         .messages = Number(*data, "messagesReceived")});
  }
  return figures;
}

}  // namespace linserve
