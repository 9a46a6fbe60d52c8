#include "client/load/load_trace.h"

#include <gmock/gmock.h>

#include "support/test_files.h"

namespace linserve {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;

TEST(LoadTrace, IsLinesOfTimesAndLengthsSinceTheFirst) {
  const auto trace = ParseTrace("# when, how long\n10 5\n  # more\n10.25\t128\n\n12 1\r\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->size(), 3U);
  EXPECT_EQ(trace->at(0).time, milliseconds(0));
  EXPECT_EQ(trace->at(1).time, milliseconds(250));
  EXPECT_EQ(trace->at(1).length, 128);
  EXPECT_EQ(trace->at(2).time, milliseconds(2000));
  EXPECT_EQ(MeanRate(*trace), 1);
}

TEST(LoadTrace, MayHaveTheTimesOfAClock) {
  const auto trace = ParseTrace("1700000000 20\n1700000000.5 30\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->at(1).time, milliseconds(500));
}

TEST(LoadTrace, SaysWhichLineIsNone) {
  for (const char* line :
       {"x 5", "1", "1 0", "-1 5", "1 5 6", "nan 5", "1e30 5", "1 99999999999999999999"}) {
    EXPECT_THAT(ParseTrace("0 1\n" + std::string(line)),
                IsStatus(StatusCode::kInvalidArgument, "line 2 of the trace is"))
        << line;
  }
  EXPECT_THAT(ParseTrace("2 1\n1 1\n"), IsStatus(StatusCode::kInvalidArgument, "line 2"));
  EXPECT_THAT(ParseTrace("# nothing\n"), IsStatus(StatusCode::kInvalidArgument, "no requests"));
  EXPECT_THAT(ReadTrace("/nowhere"), IsStatus(StatusCode::kNotFound, "/nowhere"));
}

}  // namespace
}  // namespace linserve
