#pragma once

#include <dirent.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/endpoint.h"

namespace linserve {

// Ends connections of this process. It needs no descriptor beyond those that it holds.
class Connections {
 public:
  Connections();
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Ends one connection by the Unix socket at the path: that with the most resets of calls among
  // the bytes that gRPC has not read yet, for it does not tell which connection a figure is of.
  // Returns false if no connection has any now.
  bool HangUpLocal(const std::string& path);

  // Returns the bytes that came by each connection by TCP, by the other end.
  std::map<std::string, int64_t> BytesReceived();

  // Ends the connections with these peers, which are what Endpoint::ToString() writes, and returns
  // how many there were. gRPC takes the peers for some that hung up.
  int HangUp(const std::set<std::string>& peers);

  // Ends connections that came by TCP to the port, or by the Unix socket at the path, and of which
  // gRPC is to read frame after frame of headers (CONTINUATION) that do not end. Returns their
  // peers. Under TLS frames are not to be seen.
  std::vector<std::string> HangUpOnEndlessHeaders(int port, const std::string& path);

  // Ends all connections that came by TCP to the port, or by the Unix socket at the path; an empty
  // path is none, nor is a port of -1.
  void HangUpOnAll(int port, const std::string& path);

 private:
  // Calls `visit` with a copy of each descriptor.
  template <typename Visit>
  void ForEach(const Visit& visit);
  // Returns what gRPC has not read of a connection yet, as far as it fits into unread_.
  std::string_view Unread(int connection);
  void End(int connection);

  DIR* descriptors_;
  int nothing_;
  int copy_;   // copy of the descriptor that is looked at
  int worst_;  // copy of the one that HangUpLocal() ends
  std::vector<char> unread_;
};

}  // namespace linserve
