#pragma once

#include <dirent.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/system/endpoint.h"

namespace linserve {

// Holds connections of this process's gRPC servers.
struct Floods {
  std::vector<Endpoint> peers{};  // other ends of those by TCP
  bool local = false;             // there are some by a Unix socket, whose other ends have no names
};

// Returns the connections that have begun more than `calls` calls with which gRPC is not done yet;
// calls that were reset by now count, too.
Floods ConnectionsWithMoreCallsThan(int64_t calls);

// Ends connections of this process. It needs no descriptor beyond those that it holds.
class Connections {
 public:
  Connections();
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Ends the connections with this peer, and returns how many there were. gRPC takes the peer for
  // one that hung up.
  int HangUp(const Endpoint& peer);

  // Ends one connection by the Unix socket at the path: that with the most resets of calls among
  // the bytes that gRPC has not read yet, for it does not tell which connection a figure is of.
  // Returns false if no connection has any now.
  bool HangUpLocal(const std::string& path);

  // Ends all connections that came by TCP to the port, or by the Unix socket at the path.
  void HangUpOnAll(int port, const std::string& path);

 private:
  // Calls `visit` with a copy of each descriptor.
  template <typename Visit>
  void ForEach(const Visit& visit);
  int64_t UnreadResets(int descriptor);

  DIR* descriptors_;
  int nothing_;
  int copy_;   // copy of the descriptor that is looked at
  int worst_;  // copy of the one that HangUpLocal() ends
  std::vector<char> unread_;
};

}  // namespace linserve
