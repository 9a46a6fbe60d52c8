#pragma once

#include <dirent.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace linserve {

// Ends connections of this process's gRPC servers. It needs no descriptor beyond those that it
// holds. A connection is named by its peer, as Endpoint::ToString() writes it; those by the Unix
// socket, whose other ends have no names, by its path all together.
class Connections {
 public:
  // `port` is that of the servers by TCP, `unix_socket` the path of their Unix socket; empty: they
  // have none.
  Connections(int port, std::string unix_socket);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  const std::string& unix_socket() const { return unix_socket_; }

  // Returns the bytes that came by each connection by TCP.
  std::map<std::string, int64_t> BytesReceived();

  // These end connections, which gRPC takes for callers that hung up, and log why. They return how
  // many had not been ended before.

  // Ends those of these names.
  int HangUp(const std::set<std::string>& names, std::string_view why);

  // Ends one connection by the Unix socket: that with the most resets of calls among the bytes that
  // gRPC has not read yet, for it does not tell which connection a figure is of.
  int HangUpOnMostResets(std::string_view why);

  // Ends those of which gRPC is to read frame after frame of headers (CONTINUATION) that do not
  // end. Under TLS frames are not to be seen.
  int HangUpOnEndlessHeaders();

  // Ends all connections once what was written to them has been sent, and logs nothing.
  void HangUpOnAll();

 private:
  // Calls `visit` with the name of each connection and a copy of its descriptor.
  template <typename Visit>
  void ForEach(const Visit& visit);
  // Returns the name of a descriptor's connection; nullopt if it is none of the servers'.
  std::optional<std::string> NameOf(int descriptor) const;
  // Returns what gRPC has not read of a connection yet, as far as it fits into unread_.
  std::string_view Unread(int connection);
  // Ends a connection at once, and returns 1 if it had not been ended before, else 0.
  int End(const std::string& name, int connection, std::string_view why);
  // Takes what gRPC has not read of a connection, which it would compute with before it hears of
  // the end.
  void Drain(int connection);

  const int port_;
  const std::string unix_socket_;
  DIR* descriptors_;
  int nothing_;
  int copy_;   // copy of the descriptor that is looked at
  int worst_;  // copy of the one that HangUpOnMostResets() ends
  std::vector<char> unread_;
};

}  // namespace linserve
