#pragma once

#include <dirent.h>

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

// Ends connections of this process. It needs no descriptor beyond those that it holds.
class Connections {
 public:
  Connections();
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // How many there were with this peer; gRPC takes it for one that hung up.
  int HangUp(const Peer& peer);

 private:
  DIR* descriptors_;
  int nothing_;
  int copy_;  // of the descriptor that is looked at
};

}  // namespace linserve
