#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace linserve {

// The other end of a TCP connection.
struct Peer {
  std::string address;  // 4 or 16 bytes, as in a packet
  int port = 0;

  bool operator==(const Peer&) const = default;
  std::string ToString() const;  // "127.0.0.1:40000", "[::1]:40000"
};

// The peers of this process's gRPC servers that have begun more than `calls` calls with which gRPC
// is not done yet, be they reset by now.
std::vector<Peer> PeersWithMoreCallsThan(int64_t calls);

// Ends this process's connections with a peer, which gRPC takes for a peer that hung up. How many.
int HangUp(const Peer& peer);

}  // namespace linserve
