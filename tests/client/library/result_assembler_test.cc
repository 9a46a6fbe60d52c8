#include "client/library/result_assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Makes rows [offset, offset + count) of `total` rows of two columns.
ResultChunk Rows(size_t index, int64_t offset, int64_t count, int64_t total, bool last) {
  std::vector<float> values(static_cast<size_t>(count) * 2);
  std::iota(values.begin(), values.end(), static_cast<float>(offset * 2));
  ResultChunk chunk;
  chunk.index = index;
  chunk.output = "y";
  chunk.row_offset = offset;
  chunk.total_rows = total;
  chunk.rows = Tensor::FromFloats({count, 2}, values);
  chunk.last = last;
  return chunk;
}

ResultChunk Pooled(size_t index) {
  ResultChunk chunk = Rows(index, 0, 1, 1, true);
  chunk.rows = chunk.rows.Reshaped({2});
  return chunk;
}

TEST(ResultAssembler, JoinsTheRowsOfInterleavedSequences) {
  ResultAssembler assembler(2);
  EXPECT_FALSE((*assembler.Add(Rows(1, 0, 2, 3, false))).has_value());
  EXPECT_FALSE((*assembler.Add(Rows(0, 0, 1, 2, false))).has_value());
  const auto first = *assembler.Add(Rows(1, 2, 1, 3, true));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->index, 1U);
  const Tensor& y = first->outputs.at("y");
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(std::vector<float>(y.data<float>(), y.data<float>() + 6),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_FALSE(assembler.complete());
  EXPECT_THAT(assembler.Unanswered(), ElementsAre(0));
  EXPECT_TRUE((*assembler.Add(Rows(0, 1, 1, 2, true))).has_value());
  EXPECT_TRUE(assembler.complete());
}

TEST(ResultAssembler, PassesASinglePieceOnWithoutACopy) {
  ResultAssembler assembler(1);
  const ResultChunk chunk = Rows(0, 0, 3, 3, true);
  const auto result = *assembler.Add(chunk);
  EXPECT_EQ(result->outputs.at("y").bytes(), chunk.rows.bytes());
}

TEST(ResultAssembler, TakesAPooledVector) {
  ResultAssembler assembler(1);
  const auto result = *assembler.Add(Pooled(0));
  EXPECT_EQ(result->outputs.at("y").shape(), (Shape{2}));
}

TEST(ResultAssembler, KeepsSeveralOutputsApart) {
  ResultAssembler assembler(1);
  ResultChunk weights = Rows(0, 0, 2, 2, true);
  weights.output = "weights";
  EXPECT_FALSE((*assembler.Add(Rows(0, 0, 3, 3, false))).has_value());
  const auto result = *assembler.Add(weights);
  EXPECT_EQ(result->outputs.at("y").shape(), (Shape{3, 2}));
  EXPECT_EQ(result->outputs.at("weights").shape(), (Shape{2, 2}));
}

TEST(ResultAssembler, AnErrorEndsTheSequenceAndDropsItsRows) {
  ResultAssembler assembler(1);
  EXPECT_TRUE(assembler.Add(Rows(0, 0, 1, 3, false)).ok());
  ResultChunk error;
  error.status = absl::DeadlineExceededError("too late");
  const auto result = *assembler.Add(error);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, absl::DeadlineExceededError("too late"));
  EXPECT_TRUE(result->outputs.empty());
  EXPECT_TRUE(assembler.complete());
}

struct BadChunks {
  std::vector<ResultChunk> chunks;  // only the last one is wrong
  std::string message;
};

TEST(ResultAssembler, RefusesWhatMakesNoSense) {
  ResultChunk other_type = Rows(0, 1, 1, 2, true);
  other_type.rows = Tensor::FromFloats({1, 3}, {1, 2, 3});
  ResultChunk no_axis = Rows(0, 0, 2, 2, true);
  no_axis.rows = Tensor::FromFloats({}, {1});
  ResultChunk twice = Pooled(0);
  twice.last = false;
  twice.total_rows = 0;
  const std::vector<BadChunks> cases = {
      {{Rows(1, 0, 1, 1, true)}, "only 1 sequences"},
      {{Rows(0, 0, 1, 1, true), Rows(0, 0, 1, 1, true)}, "after its last message"},
      {{Rows(0, 1, 1, 2, false)}, "rows 1 to 2 of 2 after 0"},
      {{Rows(0, 0, 1, 3, false), Rows(0, 2, 1, 3, true)}, "rows 2 to 3 of 3 after 1"},
      {{Rows(0, 0, 1, 3, false), Rows(0, 1, 1, 4, true)}, "rows 1 to 2 of 4 after 1 of 3"},
      {{Rows(0, 0, 3, 2, true)}, "rows 0 to 3 of 2"},
      {{Rows(0, 0, 1, 2, true)}, "ended after 1 of 2"},
      {{Rows(0, 0, 1, 2, false), other_type}, "unequal types"},
      {{no_axis}, "no axis of rows"},
      {{twice, twice}, "of 0 after 0"},
  };
  for (const BadChunks& bad : cases) {
    ResultAssembler assembler(1);
    for (size_t i = 0; i + 1 < bad.chunks.size(); ++i) {
      EXPECT_TRUE(assembler.Add(bad.chunks[i]).ok()) << bad.message;
    }
    const auto result = assembler.Add(bad.chunks.back());
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal) << bad.message;
    EXPECT_THAT(result.status().ToString(), HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace linserve
