#include "attention/rows/layout_slices.h"

#include <gtest/gtest.h>

#include <random>

#include "attention/layouts.h"

namespace linserve {
namespace {

TEST(LayoutSlices, AreOneIfTheLimitIsNotReached) {
  const auto slices = LayoutSlices(Packed({3, 1, 2}), 6);
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].rows, 6);
  ASSERT_EQ(slices[0].spans.size(), 3U);
  EXPECT_EQ(slices[0].spans[2].start, 4);
  EXPECT_EQ(slices[0].spans[2].length, 2);
}

TEST(LayoutSlices, CutASequenceAndRememberWhereItGoesOn) {
  const auto slices = LayoutSlices(Packed({2, 5}), 4);
  ASSERT_EQ(slices.size(), 2U);
  ASSERT_EQ(slices[0].spans.size(), 2U);
  EXPECT_EQ(slices[0].spans[1].length, 2);
  EXPECT_EQ(slices[0].spans[1].offset, 0);
  ASSERT_EQ(slices[1].spans.size(), 1U);
  EXPECT_EQ(slices[1].begin, 4);
  EXPECT_EQ(slices[1].spans[0].start, 0);
  EXPECT_EQ(slices[1].spans[0].length, 3);
  EXPECT_EQ(slices[1].spans[0].offset, 2);
}

TEST(LayoutSlices, JoinNeighboursOfEqualLengthAtEqualDistances) {
  const auto packed = LayoutSlices(Packed({2, 2, 2, 3}), 100);
  ASSERT_EQ(packed[0].spans.size(), 2U);
  EXPECT_EQ(packed[0].spans[0].count, 3);
  EXPECT_EQ(packed[0].spans[0].stride, 2);
  const auto padded = LayoutSlices(Padded({2, 2, 1}, 4), 100);
  ASSERT_EQ(padded[0].spans.size(), 2U);
  EXPECT_EQ(padded[0].spans[0].count, 2);
  EXPECT_EQ(padded[0].spans[0].stride, 4);
}

TEST(LayoutSlices, CutAtMultiplesEvenIfTheSliceGetsLonger) {
  const auto slices = LayoutSlices(Packed({1, 10}), 2, /*multiple=*/4);
  std::vector<int64_t> ends;
  for (const LayoutSlice& slice : slices) ends.push_back(slice.begin + slice.rows);
  EXPECT_EQ(ends, (std::vector<int64_t>{1, 5, 9, 11}));
}

TEST(LayoutSlices, HoldEveryRowOfEverySequenceOnce) {
  std::mt19937_64 random(5);
  const auto any = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> lengths(static_cast<size_t>(any(1, 8)));
    for (int64_t& length : lengths) length = any(1, 12);
    const PlacedLayout layout = round % 2 == 0 ? Packed(lengths) : Padded(lengths, 13);
    const int64_t limit = any(1, 30);
    const int64_t multiple = any(1, 5);
    std::vector<int64_t> next(lengths.size(), 0);  // row of each sequence
    int64_t begin = 0;
    for (const LayoutSlice& slice : LayoutSlices(layout, limit, multiple)) {
      ASSERT_EQ(slice.begin, begin);
      begin += slice.rows;
      ASSERT_LE(slice.rows, std::max(limit, multiple));
      for (const SliceSpan& span : slice.spans) {
        for (int64_t i = 0; i < span.count; ++i) {
          const auto sequence = static_cast<size_t>(span.first + i);
          ASSERT_EQ(span.offset, next[sequence]);
          ASSERT_EQ(span.offset % multiple, 0);
          ASSERT_EQ(slice.begin + span.start + i * span.stride,
                    layout.starts[sequence] + span.offset);
          next[sequence] += span.length;
        }
      }
    }
    EXPECT_EQ(begin, layout.rows);
    EXPECT_EQ(next, lengths);
  }
}

}  // namespace
}  // namespace linserve
