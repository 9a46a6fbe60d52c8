#include "attention/landmarks/landmark_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/blocks/block_landmarks.h"
#include "attention/layouts.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "attention/rows/spans.h"

namespace linserve {
namespace {

constexpr int64_t kLandmarkHeads = 3;
constexpr int64_t kLandmarkWidth = 8;
constexpr int64_t kLandmarkInner = kLandmarkHeads * kLandmarkWidth;

TEST(LandmarkAttention, TakesTheMeansOfEqualSegments) {
  const at::Tensor rows = Matrix({{1, 2}, {3, 4}, {5, 0}, {7, 2}});
  EXPECT_TRUE(at::equal(SegmentMeans(rows, 2), Matrix({{2, 3}, {6, 1}})));
}

// Where each row is a landmark, and the rows differ so much that the steps reach the inverse.
TEST(LandmarkAttention, IsSoftmaxAttentionWhereRowsAreLandmarks) {
  const at::Tensor queries = at::eye(kLandmarkWidth).mul(6).expand({2, 3, -1, -1});
  const at::Tensor values = at::randn({2, 3, kLandmarkWidth, 5});
  const at::Tensor expected = at::matmul(
      at::softmax(at::matmul(queries, queries.transpose(-2, -1)) / std::sqrt(8.0), -1), values);
  for (const bool by_head : {false, true}) {
    const at::Tensor result =
        LandmarkAttention(queries, queries, values, {}, kLandmarkWidth, by_head);
    EXPECT_LT((result - expected).abs().max().item<float>(), 1e-5);
  }
}

TEST(LandmarkAttention, DoesNotSeeTheValuesOfHiddenKeys) {
  const at::Tensor queries = at::randn({1, 2, 12, 4});
  const at::Tensor values = at::randn({1, 2, 12, 4});
  at::Tensor mask = at::zeros({1, 1, 1, 12});
  mask.narrow(-1, 9, 3).fill_(-1e30);
  at::Tensor others = values.clone();
  others.narrow(2, 9, 3).fill_(100);
  const at::Tensor result = LandmarkAttention(queries, queries, values, mask, 3, false);
  EXPECT_TRUE(at::equal(LandmarkAttention(queries, queries, others, mask, 3, false), result));
  EXPECT_FALSE(at::equal(LandmarkAttention(queries, queries, values, {}, 3, false), result));
}

TEST(BlockLandmarks, GiveWhatTensorsGive) {
  for (const auto& [landmarks, segment] : {std::pair{4, 6}, {1, 20}, {32, 9}, {150, 2}}) {
    SCOPED_TRACE(landmarks);
    const int64_t length = int64_t{landmarks} * segment;
    const at::Tensor rows = at::randn({length + kFewestKernelRows, 3 * kLandmarkInner});
    const at::Tensor of_keys =
        at::where(at::rand({length}) < 0.7, at::zeros({1}), at::full({1}, BlockAttention::kHidden));
    const BlockAttention attention({.heads = kLandmarkHeads, .dim_head = kLandmarkWidth});
    const int64_t blocks = (length + kBlockRows - 1) / kBlockRows;
    const at::Tensor memory = at::empty({blocks, attention.KeyElements(kBlockRows)});
    const at::Tensor scratch = at::empty({attention.ScratchElements()});
    for (int64_t block = 0; block < blocks; ++block) {
      const RowBlock own = BlockOf(rows, block * kBlockRows);
      attention.LayOut(own.Columns(kLandmarkInner), own.Columns(2 * kLandmarkInner),
                       std::min(kBlockRows, length - block * kBlockRows),
                       BlockOf(memory, block).data, scratch.mutable_data_ptr<float>());
    }
    const BlockLandmarks::Sizes sizes{kLandmarkHeads, kLandmarkWidth, landmarks, segment == 2};
    const BlockLandmarks by_blocks(sizes, rows, attention,
                                   {memory.mutable_data_ptr<float>(), length, kBlockRows},
                                   {.of_keys = of_keys.const_data_ptr<float>()});
    const at::Tensor result = at::empty({length, kLandmarkInner});
    ForBlocks(length, BlockLandmarks::ScratchElements(sizes),
              [&](int64_t begin, int64_t count, float* own) {
                by_blocks.Attend(BlockOf(rows, begin), count, BlockOf(result, begin), own);
              });
    const auto heads = [&](int64_t part) {
      const at::Tensor own =
          rows.narrow(0, 0, length).narrow(1, part * kLandmarkInner, kLandmarkInner);
      return SplitHeads(own.unsqueeze(0), kLandmarkHeads).to(at::kDouble);
    };
    const at::Tensor expected = JoinHeads(LandmarkAttention(
        heads(0), heads(1), heads(2), of_keys.to(at::kDouble), landmarks, segment == 2));
    const at::Tensor difference = (result.to(at::kDouble) - expected.squeeze(0)).abs().max();
    EXPECT_LT(difference.item<double>(), 1e-5 * expected.abs().max().item<double>());
  }
}

}  // namespace
}  // namespace linserve
