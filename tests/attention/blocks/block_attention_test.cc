#include "attention/blocks/block_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "attention/layouts.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "attention/rows/threads.h"

namespace linserve {
namespace {

constexpr int64_t kAttentionHeads = 3;
constexpr int64_t kAttentionWidth = 8;
constexpr int64_t kAttentionInner = kAttentionHeads * kAttentionWidth;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct AttendedRows {
  at::Tensor queries, keys, values;  // [n, inner]; behind the queries are rows that nobody asks for
  at::Tensor of_keys, of_distances;  // undefined: nothing is added
  int64_t length;

  explicit AttendedRows(int64_t rows)
      : queries(at::randn({rows + kFewestKernelRows, kAttentionInner})),
        keys(at::randn({rows, kAttentionInner}) * 2),
        values(at::randn({rows, kAttentionInner})),
        length(rows) {}
};

at::Tensor HeadsOf(const at::Tensor& rows) {
  return rows.to(at::kDouble)
      .view({rows.size(0), kAttentionHeads, kAttentionWidth})
      .transpose(0, 1);
}

// Computes the formula in F64.
at::Tensor NaiveAttention(const AttendedRows& sequence, int64_t window) {
  const int64_t n = sequence.length;
  at::Tensor scores =
      at::matmul(HeadsOf(sequence.queries.narrow(0, 0, n)), HeadsOf(sequence.keys).transpose(1, 2));
  const at::Tensor places = at::arange(n);
  const at::Tensor distance = places - places.unsqueeze(1);
  if (sequence.of_keys.defined()) scores += sequence.of_keys.to(at::kDouble);
  if (sequence.of_distances.defined()) {
    const int64_t same = sequence.of_distances.size(1) / 2;
    scores += sequence.of_distances.to(at::kDouble)
                  .index_select(1, (distance + same).flatten())
                  .view({kAttentionHeads, n, n});
  }
  if (window >= 0) scores.masked_fill_(distance.abs() > window, -kInfinity);
  const at::Tensor weights = at::softmax(scores / std::sqrt(double(kAttentionWidth)), -1);
  return at::matmul(weights, HeadsOf(sequence.values)).transpose(0, 1).flatten(1);
}

// Computes it with keys and queries in blocks of so many rows.
// The first keys are seen besides with `of_others`, if that is defined.
at::Tensor AttendByBlocks(const AttendedRows& sequence, const BlockAttention& attention,
                          int64_t key_rows, int64_t query_rows, const at::Tensor& of_others = {}) {
  at::Tensor scratch = at::full({attention.ScratchElements()}, kNaN);
  const int64_t blocks = (sequence.length + key_rows - 1) / key_rows;
  const at::Tensor memory = at::full({blocks, attention.KeyElements(key_rows)}, kNaN);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t row = block * key_rows;
    attention.LayOut(BlockOf(sequence.keys, row), BlockOf(sequence.values, row),
                     std::min(key_rows, sequence.length - row), BlockOf(memory, block).data,
                     scratch.mutable_data_ptr<float>());
  }
  BlockAttention::Scores scores;
  if (sequence.of_keys.defined()) scores.of_keys = sequence.of_keys.const_data_ptr<float>();
  if (sequence.of_distances.defined()) {
    scores.distances = sequence.of_distances.size(1);
    scores.of_distances = sequence.of_distances.const_data_ptr<float>() + scores.distances / 2;
  }
  const at::Tensor others = at::full({attention.KeyElements(key_rows)}, kNaN);
  if (of_others.defined()) {
    attention.LayOut(BlockOf(sequence.keys), BlockOf(sequence.values), of_others.size(0),
                     others.mutable_data_ptr<float>(), scratch.mutable_data_ptr<float>());
    scores.others = {others.mutable_data_ptr<float>(), of_others.size(0), key_rows};
    scores.of_others = of_others.const_data_ptr<float>();
  }
  at::Tensor out = at::empty({sequence.length, kAttentionInner});
  for (int64_t row = 0; row < sequence.length; row += query_rows) {
    attention.Attend(BlockOf(sequence.queries, row), row,
                     std::min(query_rows, sequence.length - row),
                     {memory.mutable_data_ptr<float>(), sequence.length, key_rows}, scores,
                     BlockOf(out, row), scratch.mutable_data_ptr<float>());
  }
  return out;
}

at::Tensor AttendByBlocks(const AttendedRows& sequence, DType products, int64_t window,
                          int64_t key_rows, int64_t query_rows) {
  const BlockAttention attention({.heads = kAttentionHeads,
                                  .dim_head = kAttentionWidth,
                                  .products = products,
                                  .before = window,
                                  .after = window});
  return AttendByBlocks(sequence, attention, key_rows, query_rows);
}

class BlockAttentionTypes : public ::testing::TestWithParam<DType> {
 protected:
  // Expects the formula's results, whatever the blocks.
  static void Check(const AttendedRows& sequence, int64_t window = -1) {
    const at::Tensor expected = NaiveAttention(sequence, window);
    const double tolerance = GetParam() == DType::kF32 ? 1e-5 : 0.06;
    for (const auto& [keys, queries] : {std::pair{128, 128}, {16, 7}, {48, 100}, {128, 1}}) {
      EXPECT_LT(
          LargestDifference(AttendByBlocks(sequence, GetParam(), window, keys, queries), expected),
          tolerance)
          << sequence.length << " rows, " << keys << " keys and " << queries
          << " queries a block, window " << window;
    }
  }
};

TEST_P(BlockAttentionTypes, IsSoftmaxAttentionForSequencesOfAnyLength) {
  for (const int64_t length : {1, 2, 15, 16, 17, 35, 128, 129, 300}) Check(AttendedRows(length));
}

TEST_P(BlockAttentionTypes, HidesKeysWhereverTheyStand) {
  for (const int64_t length : {5, 40, 200}) {
    AttendedRows sequence(length);
    sequence.of_keys =
        at::zeros({length}).masked_fill_(at::rand({length}) < 0.4, BlockAttention::kHidden);
    sequence.of_keys[length / 2] = 0;
    Check(sequence);
    // Whole blocks are hidden before the first key that is seen.
    sequence.of_keys.fill_(BlockAttention::kHidden);
    sequence.of_keys[length - 1] = 0;
    Check(sequence);
  }
}

TEST_P(BlockAttentionTypes, AddsWhatDependsOnTheDistance) {
  for (const int64_t length : {1, 20, 150}) {
    AttendedRows sequence(length);
    sequence.of_distances = at::randn({kAttentionHeads, 2 * length + 5});
    Check(sequence);
  }
}

TEST_P(BlockAttentionTypes, SeesNoFurtherThanItsWindow) {
  for (const int64_t window : {0, 1, 20, 64, 1000}) Check(AttendedRows(210), window);
}

TEST_P(BlockAttentionTypes, SeesNoLaterKeyAndNoFurtherBackThanItsWindow) {
  for (const int64_t before : {-1, 0, 20, 150}) {
    const AttendedRows sequence(210);
    const int64_t reach = before < 0 ? sequence.length : before;
    const at::Tensor hidden = at::ones({210, 210}, at::kBool).tril(0).triu(-reach).logical_not();
    const BlockAttention attention({.heads = kAttentionHeads,
                                    .dim_head = kAttentionWidth,
                                    .products = GetParam(),
                                    .before = before,
                                    .after = 0});
    const at::Tensor scores = at::matmul(HeadsOf(sequence.queries.narrow(0, 0, 210)),
                                         HeadsOf(sequence.keys).transpose(1, 2));
    const at::Tensor weights = at::softmax(
        scores.masked_fill(hidden, -kInfinity) / std::sqrt(double(kAttentionWidth)), -1);
    EXPECT_LT(
        LargestDifference(AttendByBlocks(sequence, attention, 64, 100),
                          at::matmul(weights, HeadsOf(sequence.values)).transpose(0, 1).flatten(1)),
        GetParam() == DType::kF32 ? 1e-5 : 0.06)
        << before;
  }
}

TEST_P(BlockAttentionTypes, SharesAHeadOfKeysAmongNeighbouringHeadsOfQueries) {
  AttendedRows sequence(140);
  const BlockAttention attention({.heads = kAttentionHeads,
                                  .dim_head = kAttentionWidth,
                                  .products = GetParam(),
                                  .key_heads = 1});
  AttendedRows shared = sequence;
  shared.keys = sequence.keys.narrow(1, 0, kAttentionWidth).contiguous();
  shared.values = sequence.values.narrow(1, 0, kAttentionWidth).contiguous();
  sequence.keys = shared.keys.repeat({1, kAttentionHeads});
  sequence.values = shared.values.repeat({1, kAttentionHeads});
  EXPECT_LT(
      LargestDifference(AttendByBlocks(shared, attention, 128, 50), NaiveAttention(sequence, -1)),
      GetParam() == DType::kF32 ? 1e-5 : 0.06);
}

TEST_P(BlockAttentionTypes, CapsScoresBeforeItHidesKeys) {
  constexpr double kCap = 1.5;
  AttendedRows sequence(140);
  sequence.of_keys = at::where(at::rand({140}) < 0.3, BlockAttention::kHidden, 0.0F);
  sequence.of_keys[0] = 0;
  const BlockAttention attention({.heads = kAttentionHeads,
                                  .dim_head = kAttentionWidth,
                                  .products = GetParam(),
                                  .after = 0,
                                  .scale = 0.7,
                                  .cap = kCap});
  const at::Tensor scores = at::matmul(HeadsOf(sequence.queries.narrow(0, 0, 140)),
                                       HeadsOf(sequence.keys).transpose(1, 2));
  const at::Tensor hidden =
      at::ones({140, 140}, at::kBool).triu(1).logical_or(sequence.of_keys < 0);
  const at::Tensor weights =
      at::softmax((kCap * at::tanh(scores * 0.7 / kCap)).masked_fill(hidden, -kInfinity), -1);
  EXPECT_LT(
      LargestDifference(AttendByBlocks(sequence, attention, 64, 100),
                        at::matmul(weights, HeadsOf(sequence.values)).transpose(0, 1).flatten(1)),
      GetParam() == DType::kF32 ? 1e-5 : 0.06);
}

TEST_P(BlockAttentionTypes, AveragesAWindowAllOfWhichIsHidden) {
  constexpr int64_t kWindow = 3;
  AttendedRows sequence(60);
  sequence.of_keys = at::full({60}, BlockAttention::kHidden);
  sequence.of_keys[50] = 0;
  const at::Tensor rows = AttendByBlocks(sequence, GetParam(), kWindow, 16, 20);
  for (const int64_t row : {0, 2, 17, 40, 59}) {
    const int64_t first = std::max<int64_t>(0, row - kWindow);
    const int64_t end = std::min<int64_t>(60, row + kWindow + 1);
    const at::Tensor mean =
        sequence.values.narrow(0, first, end - first).sum(0) / (2 * kWindow + 1);
    EXPECT_LT(LargestDifference(rows[row], mean), 0.02) << row;
  }
  EXPECT_LT(LargestDifference(rows[48], sequence.values[50]), 0.02);
}

TEST_P(BlockAttentionTypes, GivesZerosOfSuchAWindowWhereThatIsAskedFor) {
  const BlockAttention attention({.heads = kAttentionHeads,
                                  .dim_head = kAttentionWidth,
                                  .products = GetParam(),
                                  .before = 3,
                                  .after = 3,
                                  .blank = true});
  AttendedRows sequence(60);
  sequence.of_keys = at::full({60}, BlockAttention::kHidden);
  sequence.of_keys[50] = 0;
  const at::Tensor rows = AttendByBlocks(sequence, attention, 16, 20);
  for (const int64_t row : {0, 17, 46, 54, 59}) EXPECT_EQ(rows[row].abs().max().item<float>(), 0);
  EXPECT_LT(LargestDifference(rows[48], sequence.values[50]), 0.02);
}

TEST_P(BlockAttentionTypes, SeesTheWindowsOfRunsOfRowsAndOtherKeysBesides) {
  constexpr int64_t kRows = 210;
  const AttendedRows sequence(kRows);
  const BlockAttention attention({.heads = kAttentionHeads,
                                  .dim_head = kAttentionWidth,
                                  .products = GetParam(),
                                  .before = 10,
                                  .after = 5,
                                  .run = 20});
  const at::Tensor places = at::arange(kRows);
  const at::Tensor opens = (places - places.remainder(20) - 10).unsqueeze(1);
  const at::Tensor seen = places.ge(opens).logical_and(places.lt(opens + 35));
  // The others are the first keys, with more weight.
  constexpr int64_t kOthers = 17;
  const at::Tensor of_others = at::rand({kOthers}) * 4;
  const at::Tensor products = at::matmul(HeadsOf(sequence.queries.narrow(0, 0, kRows)),
                                         HeadsOf(sequence.keys).transpose(1, 2));
  const at::Tensor scores = at::cat({products.narrow(2, 0, kOthers) + of_others,
                                     products.masked_fill(seen.logical_not(), -kInfinity)},
                                    2) /
                            std::sqrt(double(kAttentionWidth));
  const at::Tensor values = HeadsOf(sequence.values);
  const at::Tensor expected =
      at::matmul(at::softmax(scores, -1), at::cat({values.narrow(1, 0, kOthers), values}, 1));
  EXPECT_LT(LargestDifference(AttendByBlocks(sequence, attention, 64, 100, of_others),
                              expected.transpose(0, 1).flatten(1)),
            GetParam() == DType::kF32 ? 1e-5 : 0.06);
}

TEST_P(BlockAttentionTypes, GivesZerosOfWhatIsBeforeAllVisibleKeys) {
  const BlockAttention attention({.heads = kAttentionHeads,
                                  .dim_head = kAttentionWidth,
                                  .products = GetParam(),
                                  .after = 0,
                                  .blank = true});
  AttendedRows sequence(60);
  sequence.of_keys = at::zeros({60});
  sequence.of_keys.narrow(0, 0, 30).fill_(BlockAttention::kHidden);
  const at::Tensor rows = AttendByBlocks(sequence, attention, 16, 20);
  for (const int64_t row : {0, 17, 29}) EXPECT_EQ(rows[row].abs().max().item<float>(), 0);
  EXPECT_LT(LargestDifference(rows[30], sequence.values[30]), 0.02);
}

INSTANTIATE_TEST_SUITE_P(All, BlockAttentionTypes,
                         ::testing::Values(DType::kF32, DType::kBF16, DType::kI8),
                         [](const auto& type) { return std::string(Name(type.param)); });

// Rows behind a block's own are read, so that kernels have whole rows, and change nothing.
TEST(BlockAttention, DoesNotLookAtTheQueriesBehindItsOwn) {
  AttendedRows sequence(20);
  const at::Tensor expected = AttendByBlocks(sequence, DType::kF32, -1, 128, 128);
  sequence.queries.narrow(0, 20, kFewestKernelRows).fill_(kNaN);
  EXPECT_TRUE(at::equal(AttendByBlocks(sequence, DType::kF32, -1, 128, 128), expected));
}

TEST(BlockAttention, SumsLargeScoresWithoutOverflow) {
  AttendedRows sequence(150);
  sequence.queries.mul_(100);
  sequence.keys.mul_(100);
  EXPECT_LT(LargestDifference(AttendByBlocks(sequence, DType::kF32, -1, 32, 50),
                              NaiveAttention(sequence, -1)),
            1e-2);
}

TEST(LaidOutKeys, AreReadInTheBlocksThatTheyWereLaidOutInWhateverThreadsThereAreThen) {
  const c10::InferenceMode no_autograd;
  constexpr int64_t kRows = 200;
  const BlockAttention attention({.heads = 2, .dim_head = 4});
  std::mutex mutex;
  std::map<int64_t, std::pair<int64_t, float*>> blocks;  // by their first row
  std::optional<LaidOutKeys> laid_out;
  {
    const ThreadsScope threads(4);
    laid_out.emplace(attention, kRows, 0,
                     [&](int64_t place, int64_t count, float* memory, float* /*scratch*/) {
                       const std::scoped_lock lock(mutex);
                       blocks[place] = {count, memory};
                     });
  }
  const BlockAttention::Keys keys = laid_out->keys();
  EXPECT_EQ(keys.rows, kRows);
  int64_t rows = 0;
  for (const auto& [place, block] : blocks) {
    EXPECT_EQ(place, rows);
    EXPECT_EQ(block.second,
              keys.memory + place / keys.block_rows * attention.KeyElements(keys.block_rows));
    rows += block.first;
  }
  EXPECT_EQ(rows, kRows);
}

}  // namespace
}  // namespace linserve
