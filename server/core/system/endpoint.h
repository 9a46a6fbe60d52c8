#pragma once

#include <optional>
#include <string>

namespace linserve {

// Names one end of a TCP connection.
struct Endpoint {
  std::string address;  // 4 or 16 bytes, as in a packet
  int port = 0;

  bool operator==(const Endpoint&) const = default;
  std::string Machine() const;   // "127.0.0.1", "::1"
  std::string ToString() const;  // "127.0.0.1:40000", "[::1]:40000"
};

// PeerOf() returns the other end of a connection, LocalEndOf() this one; nullopt if the descriptor
// is of something else.
std::optional<Endpoint> PeerOf(int connection);
std::optional<Endpoint> LocalEndOf(int connection);

}  // namespace linserve
