#include "core/files/gzip.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace linserve {
namespace {

// Unpacks what comes in pieces of so many bytes; none where it is malformed, or not whole.
std::optional<std::string> Unpacked(const std::string& packed, size_t piece) {
  Gunzip gunzip;
  std::string text;
  const auto keep = [&](std::string_view some) {
    text += some;
    return true;
  };
  for (size_t at = 0; at < packed.size(); at += piece) {
    if (!gunzip.Take(std::string_view(packed).substr(at, piece), keep)) return std::nullopt;
  }
  return gunzip.ended() ? std::optional(text) : std::nullopt;
}

TEST(Gzip, UnpacksWhatWasPacked) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i);
  for (const std::string& one :
       {std::string(), std::string("a"), text, std::string(1 << 20, 'a')}) {
    const std::string packed = Gzip(one);
    for (const size_t piece : {size_t{1}, size_t{1000}, packed.size()}) {
      EXPECT_EQ(Unpacked(packed, piece), one);
    }
  }
}

TEST(Gzip, IsWholeOrNone) {
  const std::string packed = Gzip("hello");
  for (const size_t piece : {size_t{1}, packed.size() + 1}) {
    for (size_t size = 0; size < packed.size(); ++size) {
      EXPECT_EQ(Unpacked(packed.substr(0, size), piece), std::nullopt);
    }
    EXPECT_EQ(Unpacked(packed + "x", piece), std::nullopt);
    EXPECT_EQ(Unpacked("hello", piece), std::nullopt);
  }
}

TEST(Gzip, MayHaveSeveralMembers) {
  const std::string packed = Gzip("hello") + Gzip("") + Gzip(", world");
  for (const size_t piece : {size_t{1}, size_t{30}, packed.size()}) {
    EXPECT_EQ(Unpacked(packed, piece), "hello, world");
  }
  EXPECT_EQ(Unpacked(packed.substr(0, packed.size() - 1), packed.size()), std::nullopt);
}

TEST(Gzip, EndsWhenNoMoreIsWanted) {
  Gunzip gunzip;
  size_t kept = 0;
  EXPECT_FALSE(gunzip.Take(Gzip(std::string(100 << 20, 'a')), [&](std::string_view some) {
    kept += some.size();
    return kept <= (1 << 20);
  }));
  EXPECT_LT(kept, size_t{2} << 20);
}

}  // namespace
}  // namespace linserve
