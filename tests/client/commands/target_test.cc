#include "client/commands/target.h"

#include <gmock/gmock.h>

namespace linserve {
namespace {

using ::testing::HasSubstr;

TEST(TargetFault, IsNoneOfWhatGrpcCanLookFor) {
  for (const char* target :
       {"127.0.0.1:8500", "localhost:8500", "[::1]:8500", "dns:///name:8500", "dns://1.1.1.1/a:1",
        "ipv4:10.0.0.1:1,10.0.0.2:2", "ipv6:[::1]:8500", "unix:/run/socket", "unix:socket",
        "unix-abstract:name", "xds:///name"}) {
    EXPECT_EQ(TargetFault(target), "") << target;
  }
}

TEST(TargetFault, NamesAPortThatIsMissing) {
  for (const char* target : {"127.0.0.1", "localhost", "localhost:", "[::1]", "dns:///name",
                             "ipv4:10.0.0.1:1,10.0.0.2", ""}) {
    EXPECT_THAT(TargetFault(target), HasSubstr("the port is missing, expected HOST:PORT"))
        << target;
  }
}

TEST(TargetFault, IsAnAddressOfHttp) {
  EXPECT_THAT(TargetFault("http://127.0.0.1:8500"), HasSubstr("without http"));
}

}  // namespace
}  // namespace linserve
