#pragma once

#include <httplib.h>

#include <chrono>

namespace linserve {

// Makes an HTTP client of a server on this machine. Its limits end a test that hangs: those of
// cpp-httplib, five seconds, are less than a large answer takes under a sanitizer.
inline httplib::Client LocalHttpClient(int port) {
  httplib::Client client("127.0.0.1", port);
  client.set_connection_timeout(std::chrono::minutes(1));
  client.set_read_timeout(std::chrono::minutes(2));
  client.set_write_timeout(std::chrono::minutes(2));
  return client;
}

}  // namespace linserve
