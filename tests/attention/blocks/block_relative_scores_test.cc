#include "attention/blocks/block_relative_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "attention/blocks/block_attention.h"
#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr int64_t kRelativeHeads = 3;
constexpr int64_t kRelativeWidth = 8;
constexpr int64_t kRelativeInner = kRelativeHeads * kRelativeWidth;
constexpr float kUnset = std::numeric_limits<float>::quiet_NaN();

at::Tensor ByHeads(const at::Tensor& rows) {
  return rows.to(at::kDouble).view({rows.size(0), kRelativeHeads, kRelativeWidth}).transpose(0, 1);
}

// Is a sequence whose pairs of rows have the places of an increasing function of their distances.
struct Placed {
  at::Tensor queries, keys,
      values;               // [n, inner], with rows behind the queries that nobody asks for
  at::Tensor a, b;          // [positions, inner]; undefined: none
  at::Tensor of_distances;  // I32 [2n - 1]
  at::Tensor hidden;        // of queries [n]; undefined: none
  int64_t straight = 0;
  int64_t length;

  // Distances up to `near` have places of their own, and `step` places lie between further ones.
  Placed(int64_t rows, int64_t near, double step)
      : queries(at::randn({rows + kFewestKernelRows, kRelativeInner})),
        keys(at::randn({rows, kRelativeInner})),
        values(at::randn({rows, kRelativeInner})),
        straight(near),
        length(rows) {
    const at::Tensor distances = at::arange(1 - rows, rows, at::kLong);
    const at::Tensor away = distances.abs();
    const at::Tensor far = ((away - near).to(at::kDouble) * step).floor() + near;
    const at::Tensor places = at::where(away <= near, away.to(at::kDouble), far) * distances.sign();
    of_distances = (places - places[0]).to(at::kInt);
    const int64_t positions = of_distances[-1].item<int>() + 1;
    a = at::randn({positions, kRelativeInner});
    b = at::randn({positions, kRelativeInner});
  }

  at::Tensor Expected() const {
    const at::Tensor rows = at::arange(length);
    const at::Tensor place = of_distances.to(at::kLong)
                                 .index_select(0, (rows - rows.unsqueeze(1) + length - 1).flatten())
                                 .view({length, length});
    const at::Tensor q = ByHeads(queries.narrow(0, 0, length));
    at::Tensor scores = at::matmul(q, ByHeads(keys).transpose(1, 2));
    const auto all = [&](const at::Tensor& index) {
      return index.expand({kRelativeHeads, length, length});
    };
    if (a.defined()) {
      scores += at::matmul(q, ByHeads(a).transpose(1, 2)).gather(2, all(place));
    }
    if (b.defined()) {
      scores += at::matmul(ByHeads(keys), ByHeads(b).transpose(1, 2))
                    .gather(2, all(place.t()))
                    .transpose(1, 2);
    }
    scores /= std::sqrt(3.0 * kRelativeWidth);
    if (hidden.defined()) scores.masked_fill_((hidden < 0).unsqueeze(1), 0);
    return at::matmul(at::softmax(scores, -1), ByHeads(values)).transpose(0, 1).flatten(1);
  }

  at::Tensor ByBlocks(DType products, int64_t key_rows, int64_t query_rows) const {
    const BlockAttention attention({.heads = kRelativeHeads,
                                    .dim_head = kRelativeWidth,
                                    .products = products,
                                    .scale = 1 / std::sqrt(3.0 * kRelativeWidth),
                                    .relative = true});
    const BlockRelativeScores relative(a, b, kRelativeWidth, attention.rounded());
    const at::Tensor scratch = at::full({attention.ScratchElements()}, kUnset);
    const int64_t blocks = (length + key_rows - 1) / key_rows;
    const at::Tensor memory = at::full({blocks, attention.KeyElements(key_rows)}, kUnset);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = block * key_rows;
      attention.LayOut(BlockOf(keys, row), BlockOf(values, row), std::min(key_rows, length - row),
                       BlockOf(memory, block).data, scratch.mutable_data_ptr<float>());
    }
    BlockAttention::Scores scores;
    scores.relative = &relative;
    scores.places = {of_distances.const_data_ptr<int32_t>() + length - 1, straight};
    if (hidden.defined()) scores.of_queries = hidden.const_data_ptr<float>();
    at::Tensor out = at::empty({length, kRelativeInner});
    for (int64_t row = 0; row < length; row += query_rows) {
      attention.Attend(BlockOf(queries, row), row, std::min(query_rows, length - row),
                       {memory.mutable_data_ptr<float>(), length, key_rows}, scores,
                       BlockOf(out, row), scratch.mutable_data_ptr<float>());
    }
    return out;
  }
};

class BlockRelativeScoresTypes : public ::testing::TestWithParam<DType> {
 protected:
  static void Check(const Placed& sequence, const std::string& what) {
    const at::Tensor expected = sequence.Expected();
    const double tolerance = GetParam() == DType::kF32 ? 1e-5 : 0.06;
    for (const auto& [keys, queries] : {std::pair{128, 128}, {16, 7}, {48, 100}, {128, 1}}) {
      EXPECT_LT(LargestDifference(sequence.ByBlocks(GetParam(), keys, queries), expected),
                tolerance)
          << what << " of " << sequence.length << " rows, " << keys << " keys and " << queries
          << " queries a block";
    }
  }
};

TEST_P(BlockRelativeScoresTypes, AreTheFormulasForSequencesOfAnyLength) {
  for (const int64_t length : {1, 2, 15, 17, 128, 129, 300}) {
    Check(Placed(length, 20, 0.2), "shared places");
    Check(Placed(length, length, 1), "places of their own");
  }
}

TEST_P(BlockRelativeScoresTypes, AreThoseOfPlacesThatSkipPositions) {
  for (const double step : {1.7, 3.0, 9.5}) Check(Placed(300, 30, step), "skipped places");
}

TEST_P(BlockRelativeScoresTypes, MayLackEitherTerm) {
  Placed queries_alone(150, 10, 0.3);
  queries_alone.b.reset();
  Check(queries_alone, "queries alone");
  Placed keys_alone(150, 10, 0.3);
  keys_alone.a.reset();
  Check(keys_alone, "keys alone");
}

TEST_P(BlockRelativeScoresTypes, AreHiddenFromQueriesThatSeeNothing) {
  for (const int64_t length : {3, 200}) {
    Placed sequence(length, 10, 0.3);
    sequence.hidden =
        at::zeros({length}).masked_fill_(at::rand({length}) < 0.4, BlockAttention::kHidden);
    sequence.hidden[0] = BlockAttention::kHidden;
    Check(sequence, "hidden queries");
  }
}

INSTANTIATE_TEST_SUITE_P(All, BlockRelativeScoresTypes,
                         ::testing::Values(DType::kF32, DType::kBF16, DType::kI8),
                         [](const auto& type) { return std::string(Name(type.param)); });

}  // namespace
}  // namespace linserve
