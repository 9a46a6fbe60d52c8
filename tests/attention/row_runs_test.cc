#include "attention/row_runs.h"

#include <gtest/gtest.h>

#include <random>

#include "attention/layouts.h"

namespace linserve {
namespace {

TEST(RowRuns, AreOneIfTheLimitIsNotReached) {
  const auto runs = RowRuns(Packed({3, 1, 2}), 6);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].rows, 6);
  ASSERT_EQ(runs[0].pieces.size(), 3U);
  EXPECT_EQ(runs[0].pieces[2].span.start, 4);
  EXPECT_EQ(runs[0].pieces[2].span.length, 2);
}

TEST(RowRuns, CutASequenceAndRememberWhereItGoesOn) {
  const auto runs = RowRuns(Packed({2, 5}), 4);
  ASSERT_EQ(runs.size(), 2U);
  ASSERT_EQ(runs[0].pieces.size(), 2U);
  EXPECT_EQ(runs[0].pieces[1].span.length, 2);
  EXPECT_EQ(runs[0].pieces[1].offset, 0);
  ASSERT_EQ(runs[1].pieces.size(), 1U);
  EXPECT_EQ(runs[1].begin, 4);
  EXPECT_EQ(runs[1].pieces[0].span.start, 0);
  EXPECT_EQ(runs[1].pieces[0].span.length, 3);
  EXPECT_EQ(runs[1].pieces[0].offset, 2);
}

TEST(RowRuns, JoinNeighboursOfEqualLengthAtEqualDistances) {
  const auto packed = RowRuns(Packed({2, 2, 2, 3}), 100);
  ASSERT_EQ(packed[0].pieces.size(), 2U);
  EXPECT_EQ(packed[0].pieces[0].span.count, 3);
  EXPECT_EQ(packed[0].pieces[0].span.stride, 2);
  const auto padded = RowRuns(Padded({2, 2, 1}, 4), 100);
  ASSERT_EQ(padded[0].pieces.size(), 2U);
  EXPECT_EQ(padded[0].pieces[0].span.count, 2);
  EXPECT_EQ(padded[0].pieces[0].span.stride, 4);
}

TEST(RowRuns, CutAtMultiplesEvenIfTheRunGetsLonger) {
  const auto runs = RowRuns(Packed({1, 10}), 2, /*multiple=*/4);
  std::vector<int64_t> ends;
  for (const RowRun& run : runs) ends.push_back(run.begin + run.rows);
  EXPECT_EQ(ends, (std::vector<int64_t>{1, 5, 9, 11}));
}

TEST(RowRuns, HoldEveryRowOfEverySequenceOnce) {
  std::mt19937_64 random(5);
  const auto any = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> lengths(static_cast<size_t>(any(1, 8)));
    for (int64_t& length : lengths) length = any(1, 12);
    const AxisLayout layout = round % 2 == 0 ? Packed(lengths) : Padded(lengths, 13);
    const int64_t limit = any(1, 30);
    const int64_t multiple = any(1, 5);
    std::vector<int64_t> next(lengths.size(), 0);  // row of each sequence
    int64_t begin = 0;
    for (const RowRun& run : RowRuns(layout, limit, multiple)) {
      ASSERT_EQ(run.begin, begin);
      begin += run.rows;
      ASSERT_LE(run.rows, std::max(limit, multiple));
      for (const RunPiece& piece : run.pieces) {
        for (int64_t i = 0; i < piece.span.count; ++i) {
          const auto sequence = static_cast<size_t>(piece.span.first + i);
          ASSERT_EQ(piece.offset, next[sequence]);
          ASSERT_EQ(piece.offset % multiple, 0);
          ASSERT_EQ(run.begin + piece.span.start + i * piece.span.stride,
                    layout.starts[sequence] + piece.offset);
          next[sequence] += piece.span.length;
        }
      }
    }
    EXPECT_EQ(begin, layout.rows);
    EXPECT_EQ(next, lengths);
  }
}

TEST(PartOf, IsALayoutOfSomeSequencesAlone) {
  const LayoutPart packed = PartOf(Packed({3, 1, 2, 5}), 1, 2);
  EXPECT_EQ(packed.begin, 3);
  EXPECT_EQ(packed.layout.rows, 3);
  EXPECT_EQ(packed.layout.starts, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(packed.layout.lengths, (std::vector<int64_t>{1, 2}));
  const LayoutPart last = PartOf(Padded({3, 1, 2}, 4), 2, 1);
  EXPECT_EQ(last.begin, 8);
  EXPECT_EQ(last.layout.rows, 4);
  EXPECT_EQ(last.layout.padded_length, 4);
}

}  // namespace
}  // namespace linserve
