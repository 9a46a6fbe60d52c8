#include "rpc/oip/infer_answer.h"

#include <cstdint>

#include "support/test_files.h"
#include "support/test_tensors.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;

// Holds five rows of two, of which a message has `chunk_rows`.
InferAnswer Rows(int64_t chunk_rows) {
  InferAnswer answer;
  answer.rows["y"] = Tensor::FromFloats({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  answer.rows["z"] = Tensor::FromFloats({1, 2}, {10, 11});
  answer.batch_second = {"z"};
  answer.chunk_rows = chunk_rows;
  return answer;
}

TEST(InferAnswer, HasTheRowsOfItsSequenceInChunks) {
  const InferAnswer answer = Rows(2);
  ASSERT_EQ(answer.Chunks(), 3U);
  const auto first = answer.TensorsOf(0);
  EXPECT_EQ(first.at("y").shape(), (Shape{1, 2, 2}));
  EXPECT_THAT(Values(first.at("y")), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(first.at("z").shape(), (Shape{1, 1, 2}));
  const auto last = answer.TensorsOf(2);
  EXPECT_THAT(Values(last.at("y")), ElementsAre(8, 9));
  EXPECT_EQ(last.at("z").shape(), (Shape{0, 1, 2}));
}

// However many parts there are, each is made when it is sent.
TEST(InferAnswer, SharesTheBytesOfItsChunks) {
  const InferAnswer answer = Rows(1);
  EXPECT_EQ(answer.Chunks(), 5U);
  EXPECT_EQ(answer.TensorsOf(3).at("y").owner(), answer.rows.at("y").owner());
}

TEST(InferAnswer, IsOneChunkWhereMoreRowsAreAskedForThanThereAre) {
  EXPECT_EQ(Rows(5).Chunks(), 1U);
  EXPECT_EQ(Rows(INT64_MAX).Chunks(), 1U);
  EXPECT_EQ(Rows(INT64_MAX).TensorsOf(0).at("y").shape(), (Shape{1, 5, 2}));
  EXPECT_EQ(InferAnswer{}.Chunks(), 1U);
}

}  // namespace
}  // namespace linserve
