#include "rpc/calls/call_context.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

TEST(RequestId, IsTheOneGivenOrANewOne) {
  EXPECT_EQ(RequestIdOr("a"), "a");
  EXPECT_EQ(RequestIdOr(std::string(1000, 'a')), std::string(kMaxIdBytes, 'a'));
  EXPECT_NE(RequestIdOr(""), "");
  EXPECT_NE(RequestIdOr(""), RequestIdOr(""));
}

}  // namespace
}  // namespace linserve
