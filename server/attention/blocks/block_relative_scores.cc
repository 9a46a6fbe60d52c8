#include "attention/blocks/block_relative_scores.h"

#include <algorithm>

#include "attention/products/vectorized.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

// A block meets fewer positions than it has queries and keys, but where places skip some.
constexpr int64_t kPositionsAtOnce = 2 * kBlockRows;
constexpr int64_t kPositionStride = OddLines(kPositionsAtOnce);

void MultiplyMet(int64_t m, int64_t n, int64_t k, const RowBlock& a, const RowBlock& b,
                 const RowBlock& c) {
  BlockProduct(m, n, k, a, b, c, /*add=*/false);
}

void MultiplyMet(int64_t m, int64_t n, int64_t k, const Bf16Block& a, const Bf16Block& b,
                 const RowBlock& c) {
  Bf16Product(m, n, k, a, b, c, /*add=*/false);
}

RowBlock FromColumn(const RowBlock& right, int64_t column) { return right.Columns(column); }
Bf16Block FromColumn(const Bf16Block& right, int64_t column) { return right.Columns(2 * column); }

// Holds the positions that are multiplied at once.
struct MetPositions {
  int64_t first;
  int64_t count;
  bool all;  // that the block meets

  int64_t whole() const { return WholeKernelRows(count); }
};

// Calls add(i, places, begin, end) for each query: its keys from `begin` up to `end` have places in
// the range, which are places[begin...].
template <typename Function>
LINSERVE_INLINE void ForQueries(const BlockRelativeScores::Block& block, const int32_t* of,
                                const MetPositions& range, const Function& add) {
  for (int64_t i = 0; i < block.queries; ++i) {
    const int32_t* places = of + block.first - (block.row + i);
    int64_t begin = 0;
    int64_t end = block.keys;
    if (!range.all) {
      begin = std::lower_bound(places, places + end, range.first) - places;
      end = std::lower_bound(places, places + end, range.first + range.count) - places;
    }
    add(i, places, begin, end);
  }
}

// Adds products [queries, positions] to the scores of their keys.
void AddOfQueries(const BlockRelativeScores::Block& block, const RelativePlaces& places,
                  const MetPositions& range, const RowBlock& products, const RowBlock& scores) {
  const auto first = static_cast<int32_t>(range.first);
  const auto is_straight = [&](int64_t i, int64_t key) {
    const int64_t distance = block.first + key - (block.row + i);
    return distance <= places.straight && -distance <= places.straight;
  };
  Vectorized([&]() __attribute__((always_inline)) {
    ForQueries(
        block, places.of, range,
        [&](int64_t i, const int32_t* of, int64_t begin, int64_t end)
            __attribute__((always_inline)) {
              if (begin == end) return;
              float* row = scores.Rows(i).data;
              const float* made = products.Rows(i).data;
              if (is_straight(i, begin) && is_straight(i, end - 1)) {
                const int64_t offset = of[begin] - range.first - begin;
#pragma omp simd
                for (int64_t j = begin; j < end; ++j) row[j] += made[offset + j];
              } else {
#pragma omp simd
                for (int64_t j = begin; j < end; ++j) row[j] += made[of[j] - first];
              }
            });
  });
}

// Adds products [positions, keys] to the scores of their queries.
void AddOfKeys(const BlockRelativeScores::Block& block, const RelativePlaces& places,
               const MetPositions& range, const RowBlock& products, const RowBlock& scores) {
  const auto stride = static_cast<int32_t>(products.stride);
  const auto first = static_cast<int32_t>(range.first);
  Vectorized([&]() __attribute__((always_inline)) {
    ForQueries(
        block, places.of, range,
        [&](int64_t i, const int32_t* of, int64_t begin, int64_t end)
            __attribute__((always_inline)) {
              float* row = scores.Rows(i).data;
              const float* made = products.data;
              const auto last = static_cast<int32_t>(end);
#pragma omp simd
              for (auto j = static_cast<int32_t>(begin); j < last; ++j) {
                row[j] += made[(of[j] - first) * stride + j];
              }
            });
  });
}

}  // namespace

BlockRelativeScores::BlockRelativeScores(const at::Tensor& a, const at::Tensor& b, int64_t dim_head,
                                         bool rounded)
    : dim_head_(dim_head) {
  // Kernels read whole rows and columns, behind the last position, too.
  const auto readable = [](const at::Tensor& positions) {
    return at::constant_pad_nd(positions, {0, 0, 0, kFewestKernelRows});
  };
  if (a.defined()) {
    a_ = readable(a).t();
    if (rounded) {
      a_ = a_.to(at::kBFloat16).view({a_.size(0) / 2, 2, a_.size(1)}).transpose(1, 2).flatten(1);
    }
    a_ = a_.contiguous();
  }
  if (b.defined()) b_ = rounded ? readable(b).to(at::kBFloat16) : readable(b);
}

int64_t BlockRelativeScores::ScratchElements() {
  return std::max(kBlockRows * kPositionStride, kPositionsAtOnce * kTransposedStride);
}

void BlockRelativeScores::Positions(int64_t head, int64_t position, RowBlock* a,
                                    RowBlock* b) const {
  const int64_t column = head * dim_head_;
  if (a_.defined()) *a = BlockOf(a_, column).Columns(position);
  if (b_.defined()) *b = BlockOf(b_, position).Columns(column);
}

void BlockRelativeScores::Positions(int64_t head, int64_t position, Bf16Block* a,
                                    Bf16Block* b) const {
  const auto rows_of = [](const at::Tensor& rows) {
    return Bf16Block{const_cast<c10::BFloat16*>(rows.const_data_ptr<c10::BFloat16>()),
                     rows.stride(0)};
  };
  const int64_t column = head * dim_head_;
  if (a_.defined()) *a = rows_of(a_).Rows(column / 2).Columns(2 * position);
  if (b_.defined()) *b = rows_of(b_).Rows(position).Columns(column);
}

template <typename Operand>
void BlockRelativeScores::AddParts(const Block& block, const Operand& queries, const Operand& keys,
                                   const RelativePlaces& places, const RowBlock& scores,
                                   float* scratch) const {
  const int64_t least = places.of[block.first - (block.row + block.queries - 1)];
  const int64_t most = places.of[block.first + block.keys - 1 - block.row];
  const bool all = most - least < kPositionsAtOnce;
  for (int64_t first = least; first <= most; first += kPositionsAtOnce) {
    const MetPositions range{first, std::min(kPositionsAtOnce, most + 1 - first), all};
    Operand a = queries;
    Operand b = queries;
    Positions(block.head, first, &a, &b);
    // A kernel is made for each shape, so that they are to be those of other products.
    if (a_.defined()) {
      const RowBlock products{scratch, kPositionStride};
      for (int64_t column = 0; column < range.whole(); column += kBlockRows) {
        MultiplyMet(WholeKernelRows(block.queries), std::min(kBlockRows, range.whole() - column),
                    dim_head_, queries, FromColumn(a, column), products.Columns(column));
      }
      AddOfQueries(block, places, range, products, scores);
    }
    if (b_.defined()) {
      const RowBlock products{scratch, kTransposedStride};
      for (int64_t row = 0; row < range.whole(); row += kBlockRows) {
        MultiplyMet(std::min(kBlockRows, range.whole() - row), WholeKernelRows(block.keys),
                    dim_head_, b.Rows(row), keys, products.Rows(row));
      }
      AddOfKeys(block, places, range, products, scores);
    }
  }
}

void BlockRelativeScores::Add(const Block& block, const RowBlock& queries, const RowBlock& keys,
                              const RelativePlaces& places, const RowBlock& scores,
                              float* scratch) const {
  AddParts(block, queries, keys, places, scores, scratch);
}

void BlockRelativeScores::Add(const Block& block, const Bf16Block& queries, const Bf16Block& keys,
                              const RelativePlaces& places, const RowBlock& scores,
                              float* scratch) const {
  AddParts(block, queries, keys, places, scores, scratch);
}

}  // namespace linserve
