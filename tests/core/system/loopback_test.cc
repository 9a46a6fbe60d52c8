#include "core/system/loopback.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

TEST(Loopback, IsThisMachineAlone) {
  for (const char* host : {"localhost", "::1", "127.0.0.1", "127.1.2.3"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"", "0.0.0.0", "::", "128.0.0.1", "127.example.com", "127.0.0.1.nip.io",
                           "localhost.example.com"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(LoopbackTarget, IsReadInEachOfItsForms) {
  for (const char* target :
       {"localhost:8500", "127.0.0.1:8500", "[::1]:8500", "[::1]", "localhost",
        "dns:///localhost:8500", "dns:localhost:8500", "ipv4:127.0.0.1:8500", "ipv6:[::1]:8500",
        "unix:/tmp/socket", "unix-abstract:name", "0.0.0.0:8500", "[::]:8500"}) {
    EXPECT_TRUE(IsLoopbackTarget(target)) << target;
  }
  for (const char* target : {"", "host:8500", "dns:///host:8500", "10.0.0.1", "ipv4:10.0.0.1:8500",
                             "dns://127.0.0.1/host:8500"}) {
    EXPECT_FALSE(IsLoopbackTarget(target)) << target;
  }
}

}  // namespace
}  // namespace linserve
