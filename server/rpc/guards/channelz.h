#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/system/endpoint.h"

namespace linserve {

// Holds what gRPC counts of one connection of this process's servers.
struct ConnectionFigures {
  std::optional<Endpoint>
      peer;  // nullopt: it came by a Unix socket, whose other ends have no names
  // Calls that have begun and with which gRPC is not done yet; those that were reset by now count,
  // too.
  int64_t open_calls = 0;
  int64_t calls = 0;     // that ever began
  int64_t messages = 0;  // that came whole
};

// Reads the figures of all connections, by gRPC's channelz.
std::vector<ConnectionFigures> FiguresOfConnections();

}  // namespace linserve
