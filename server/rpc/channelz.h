#pragma once

#include <dirent.h>

#include <cstdint>
#include <vector>

#include "core/endpoint.h"

namespace linserve {

// The peers of this process's gRPC servers that have begun more than `calls` calls with which gRPC
// is not done yet, be they reset by now.
std::vector<Endpoint> PeersWithMoreCallsThan(int64_t calls);

// Ends connections of this process. It needs no descriptor beyond those that it holds.
class Connections {
 public:
  Connections();
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // How many there were with this peer; gRPC takes it for one that hung up.
  int HangUp(const Endpoint& peer);

 private:
  DIR* descriptors_;
  int nothing_;
  int copy_;  // of the descriptor that is looked at
};

}  // namespace linserve
