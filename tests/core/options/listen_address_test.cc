#include "core/options/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace linserve {
namespace {

TEST(ListenAddressTest, TakesHostsNumbersAndBracketedIpv6) {
  const auto all = ListenAddress::Parse("0.0.0.0:8500");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->host, "0.0.0.0");
  EXPECT_EQ(all->port, 8500);
  EXPECT_EQ(all->ToString(), "0.0.0.0:8500");
  const auto v6 = ListenAddress::Parse("[::1]:0");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 0);
  EXPECT_EQ(v6->ToString(), "[::1]:0");
}

TEST(ListenAddressTest, RefusesWhatIsNoAddressNamingTheOption) {
  ListenAddress address = {"127.0.0.1", 8080};
  OptionTable table;
  address.Bind(table, "http_address", "help");
  for (const char* text :
       {"8500", "localhost", "host:", "host:x", "host:70000", "host:-1", ":8500"}) {
    const absl::Status status = table.SetText("http_address", text, "command line");
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_EQ(status.message(), "command line: \"http_address\" is \"" + std::string(text) +
                                    "\", expected HOST:PORT, for example 127.0.0.1:8500");
  }
  EXPECT_EQ(address.port, 8080);
}

}  // namespace
}  // namespace linserve
