#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace linserve {

// Holds what gRPC counts of one connection of this process's servers.
struct ConnectionFigures {
  std::string caller;  // as Connections names it
  // Calls that have begun and with which gRPC is not done yet; those that were reset by now count,
  // too.
  int64_t open_calls = 0;
  int64_t calls = 0;     // that ever began
  int64_t messages = 0;  // that came whole
};

// Reads the figures of all connections, by gRPC's channelz. `unix_socket` is the path of the
// servers' Unix socket.
std::vector<ConnectionFigures> FiguresOfConnections(const std::string& unix_socket);

}  // namespace linserve
