#include "rpc/calls/call_context.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

constexpr const char* kId = "4bf92f3577b34da6a3ce929d0e0e4736";

TEST(TraceId, IsThatOfTheTraceparent) {
  EXPECT_EQ(TraceIdOf("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), kId);
  EXPECT_EQ(TraceIdOf("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later"), kId);
}

TEST(TraceId, OfWhatIsNoTraceparentIsNone) {
  for (const char* text : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                           "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01"}) {
    EXPECT_EQ(TraceIdOf(text), "") << text;
  }
}

TEST(RequestId, IsTheOneGivenOrANewOne) {
  EXPECT_EQ(RequestIdOr("a"), "a");
  EXPECT_EQ(RequestIdOr(std::string(1000, 'a')), std::string(kMaxIdBytes, 'a'));
  EXPECT_NE(RequestIdOr(""), "");
  EXPECT_NE(RequestIdOr(""), RequestIdOr(""));
}

}  // namespace
}  // namespace linserve
