#include "core/options/units.h"

#include <gmock/gmock.h>

#include <cmath>

namespace linserve {
namespace {

using testing::Optional;

TEST(ParseSize, KnowsUnitsOfThousandsAndOf1024) {
  EXPECT_THAT(ParseSize("17B"), Optional(17));
  EXPECT_THAT(ParseSize("1kB"), Optional(1000));
  EXPECT_THAT(ParseSize("512MB"), Optional(512e6));
  EXPECT_THAT(ParseSize("2GB"), Optional(2e9));
  EXPECT_THAT(ParseSize("1TB"), Optional(1e12));
  EXPECT_THAT(ParseSize("4KiB"), Optional(4096));
  EXPECT_THAT(ParseSize("1.5 MiB"), Optional(1.5 * (1 << 20)));
  EXPECT_THAT(ParseSize("4GiB"), Optional(std::ldexp(4, 30)));
  EXPECT_THAT(ParseSize("4Gi"), Optional(std::ldexp(4, 30)));
  EXPECT_THAT(ParseSize("1TiB"), Optional(std::ldexp(1, 40)));
  EXPECT_THAT(ParseSize("-1KiB"), Optional(-1024));
}

TEST(ParseTime, KnowsNanosecondsToDays) {
  EXPECT_THAT(ParseTime("5ns"), Optional(5));
  EXPECT_THAT(ParseTime("5us"), Optional(5e3));
  EXPECT_THAT(ParseTime("250ms"), Optional(250e6));
  EXPECT_THAT(ParseTime("30s"), Optional(30e9));
  EXPECT_THAT(ParseTime("0.5 m"), Optional(30e9));
  EXPECT_THAT(ParseTime("2min"), Optional(120e9));
  EXPECT_THAT(ParseTime("1.5h"), Optional(5400e9));
  EXPECT_THAT(ParseTime("1d"), Optional(86400e9));
}

TEST(ParseSize, TakesNothingElse) {
  for (const char* text : {"", "4", "GiB", "4G", "4M", "4gib", "4  GiB", " 4GiB", "4GiB ", "4GiB4",
                           "1e3MB", "0x4KiB", "+4MB", "4,5MB", "4s", "four GiB"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
  for (const char* text : {"", "30", "s", "30S", "30 seconds", "1h30m", "30sec", "30MB"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace linserve
