#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/kernels/tile_rows.h"

namespace linserve::cuda {

// Computes the attention of packed or padded queries over the keys of their own sequence, which are
// its own rows or the slots that its keys were projected to:
//   result[i, h] = softmax((queries[i, h] · keys[:, h]ᵀ + distances[h]) · scale) · values[:, h]
// The references are AttendToSlots() of attention/linformer/linformer_attention.h and
// SoftmaxAttention() of softmax_attention.h beside it.
//
// A block takes a tile of 64 queries of one sequence and head, a warp 16 of them, and goes over the
// keys in tiles of 64 with a running softmax, so that no score leaves the registers (the scheme of
// Dao 2023, arXiv:2307.08691). While it computes with a tile of keys, the next one comes. Blocks
// are small, and a multiprocessor has several: so sequences that fill no tile waste little, and the
// blocks of others compute while one waits. Queries are read and results written once; keys and
// values, which all tiles of a sequence read, stay in the L2 cache.
//
// For a sequence of m rows and n keys and each head it computes 4 · m · n · D FLOPs, and must move
// (2 · m + 2 · n) · D · 2 bytes.

inline constexpr int kAllRows = 1 << 30;  // no sequence has more

template <typename T>
struct SoftmaxAttentionArguments {
  const T* queries;  // all rows begin at multiples of 16 bytes
  int64_t query_stride;
  const T* keys;  // [batch, slots, key_heads · D], or [rows, key_heads · D]
  const T* values;
  int64_t key_stride;
  int64_t value_stride;
  int64_t key_batch_stride;  // of slots
  int64_t value_batch_stride;
  const int32_t* starts;
  const int32_t* lengths;
  const int32_t* tiles;  // of the queries: a sequence and its row, each
  T* result;             // [rows, heads · D]
  int64_t result_stride;
  int slots;   // 0: keys are the sequences' own rows
  int before;  // keys that a query sees before its own row, and behind it; kAllRows: all
  int after;
  int heads;     // a tile's are neighbours in the grid
  int group;     // of heads, which share a head of keys and values
  int dim_head;  // a multiple of 8
  float scale;
  // Holds [heads, 2 · center + 1], the middle for no distance. A tile that its sequence doesn't
  // fill reads what belongs to larger distances, up to kTile more than there are.
  const float* distances;
  int64_t center;
};

// D is the number of features of a head, rounded up: 32, 64, 96 or 128.
template <typename T, int D, bool kDistances>
class SoftmaxAttention {
 public:
  static constexpr int kTile = 64;  // of queries, and of keys
  static constexpr int kWarps = kTile / 16;
  // On a multiprocessor, for which a block has registers.
  static constexpr int kBlocks = D > 64 ? 2 : D > 32 ? 4 : 6;
  static constexpr int kStages = 2;  // of keys and values
  static constexpr int kElements = kTile * D;
  static constexpr int kSharedBytes = (1 + 2 * kStages) * kElements * static_cast<int>(sizeof(T));

  // Runs the block `at`, of which x counts.
  LINSERVE_KERNEL static void Run(const SoftmaxAttentionArguments<T>& arguments,
                                  const BlockIndex& at, T* shared) {
    SoftmaxAttention(arguments, at.x, shared).Compute();
  }

 private:
  static_assert(D % 32 == 0 && D <= 128);

  // Holds what a warp keeps of its 16 queries. A lane has two rows of them: `half` 0 and 1.
  struct WarpState {
    PerLane<Sums> scores[kTile / 8];
    PerLane<Sums> result[D / 8];
    PerLane<Sums> total;     // of the weights: the same in all columns
    PerLane<float> most[2];  // the largest score so far
  };

  LINSERVE_KERNEL SoftmaxAttention(const SoftmaxAttentionArguments<T>& arguments, int item,
                                   T* shared)
      : arguments_(arguments), shared_(shared), head_(item % arguments.heads) {
    const int* tile = arguments.tiles + 2 * (item / arguments.heads);
    const int sequence = tile[0];
    const int64_t start = arguments.starts[sequence];
    const int length = arguments.lengths[sequence];
    row_ = tile[1];
    first_ = start + row_;
    // The tiles of a recorded pass are for other lengths, too.
    rows_ = length - row_;
    const bool slots = arguments.slots > 0;
    key_count_ = slots ? arguments.slots : length;
    const int key_head = arguments.group == 1 ? head_ : head_ / arguments.group;
    const int column = key_head * arguments.dim_head;
    keys_ = arguments.keys + column +
            (slots ? sequence * arguments.key_batch_stride : start * arguments.key_stride);
    values_ = arguments.values + column +
              (slots ? sequence * arguments.value_batch_stride : start * arguments.value_stride);
  }

  LINSERVE_KERNEL T* KeyTile(int stage) const {
    return shared_ + (1 + stage % kStages * 2) * kElements;
  }
  LINSERVE_KERNEL T* ValueTile(int stage) const { return KeyTile(stage) + kElements; }

  LINSERVE_KERNEL void LoadQueries(int warp) const {
    const T* from =
        arguments_.queries + first_ * arguments_.query_stride + head_ * arguments_.dim_head;
    CopyRows<D, kWarps>(shared_, from, arguments_.query_stride, rows_, warp, arguments_.dim_head);
  }

  LINSERVE_KERNEL void LoadKeys(int step, int warp) const {
    const auto load = [&](T* tile, const T* all, int64_t stride) {
      CopyRows<D, kWarps>(tile, all + step * kTile * stride, stride, key_count_ - step * kTile,
                          warp, arguments_.dim_head);
    };
    load(KeyTile(step), keys_, arguments_.key_stride);
    load(ValueTile(step), values_, arguments_.value_stride);
  }

  LINSERVE_KERNEL void Compute() {
    if (rows_ <= 0) return;
    const int begin = row_ > arguments_.before ? (row_ - arguments_.before) / kTile : 0;
    const int seen =
        arguments_.after < key_count_ - row_ - kTile ? row_ + kTile + arguments_.after : key_count_;
    const int end = (seen + kTile - 1) / kTile;
    ForWarps<kWarps>([&](int warp) {
      LoadQueries(warp);
      LoadKeys(begin, warp);
      CommitCopies();
      Begin(state_[warp]);
      WaitForCopies<0>();
    });
    for (int step = begin; step < end; ++step) {
      ForWarps<kWarps>([&](int warp) {
        const bool last = step + 1 == end;
        if (!last) LoadKeys(step + 1, warp);
        CommitCopies();
        if (16 * warp < rows_) {
          Score(step, warp);
          if constexpr (kDistances) AddDistances(step, warp);
          HideUnseen(step, warp);
          Weigh(state_[warp]);
          AddValues(step, state_[warp]);
          if (last) Store(warp);
        }
        WaitForCopies<0>();
      });
    }
  }

  LINSERVE_KERNEL void Begin(WarpState& state) const {
    ForLanes([&](int lane) {
      for (auto& tile : state.result) tile[lane] = {};
      state.total[lane] = {};
      for (auto& most : state.most) most[lane] = -INFINITY;
    });
  }

  // Multiplies queries [16 · warp, + 16) by the transpose of the step's keys.
  LINSERVE_KERNEL void Score(int step, int warp) {
    WarpState& state = state_[warp];
    ForLanes([&](int lane) {
      for (auto& tile : state.scores) tile[lane] = {};
    });
    for (int depth = 0; depth < D; depth += 16) {
      PerLane<FragmentA> a;
      LoadA<D>(shared_, 16 * warp, depth, a);
      for (int key = 0; key < kTile; key += 16) {
        PerLane<FragmentB> b[2];
        LoadTransposedB<D>(KeyTile(step), key, depth, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], state.scores[key / 8 + i]);
      }
    }
  }

  // Adds what belongs to the distance from query to key. A lane's lower row is 8 below its upper
  // one: its numbers for a tile of 8 keys are the upper row's for the tile before.
  LINSERVE_KERNEL void AddDistances(int step, int warp) {
    WarpState& state = state_[warp];
    const float* at_zero =
        arguments_.distances + head_ * (2 * arguments_.center + 1) + arguments_.center;
    ForLanes([&](int lane) {
      const float* upper =
          at_zero + step * kTile + SumColumn(lane, 0) - (row_ + 16 * warp + SumRow(lane, 0));
      float lower[2] = {upper[-8], upper[-7]};
      LINSERVE_UNROLL
      for (int tile = 0; tile < kTile / 8; ++tile) {
        for (int i = 0; i < 2; ++i) {
          const float added = upper[8 * tile + i];
          state.scores[tile][lane].values[i] += added;
          state.scores[tile][lane].values[2 + i] += lower[i];
          lower[i] = added;
        }
      }
    });
  }

  // Takes the scores of keys out that there are not, or that a query does not see.
  LINSERVE_KERNEL void HideUnseen(int step, int warp) {
    const int first = row_ + 16 * warp - step * kTile;  // of the warp's rows, among the step's keys
    const int left = key_count_ - step * kTile;
    const bool sees_all = left >= kTile && first + 15 - arguments_.before <= 0 &&
                          first + arguments_.after >= kTile - 1;
    if (sees_all) return;
    WarpState& state = state_[warp];
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int row = first + SumRow(lane, 2 * half);
        const int behind = row + arguments_.after;
        const int first_key = row - arguments_.before - SumColumn(lane, 0);
        const int last_key = (behind < left ? behind : left - 1) - SumColumn(lane, 0);
        LINSERVE_UNROLL
        for (int tile = 0; tile < kTile / 8; ++tile) {
          for (int i = 0; i < 2; ++i) {
            const int key = 8 * tile + i;
            if (key < first_key || key > last_key) {
              state.scores[tile][lane].values[2 * half + i] = -INFINITY;
            }
          }
        }
      }
    });
  }

  // Scores become weights relative to the largest score so far, and what came before is made
  // relative to it, too.
  LINSERVE_KERNEL void Weigh(WarpState& state) const {
    const float scale = arguments_.scale * kLog2OfE;
    for (int half = 0; half < 2; ++half) {
      PerLane<float> most;
      ForLanes([&](int lane) {
        most[lane] = -INFINITY;
        for (int tile = 0; tile < kTile / 8; ++tile) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            most[lane] = fmaxf(most[lane], state.scores[tile][lane].values[i]);
          }
        }
      });
      OverRow(most, [](float a, float b) { return fmaxf(a, b); });
      ForLanes([&](int lane) {
        const float so_far = state.most[half][lane];
        const float now = fmaxf(so_far, most[lane]);
        const float base = now == -INFINITY ? 0 : now;  // it has seen no key yet
        // A difference first: where the largest score stays, the factor is 1 to the last bit.
        const float factor = Exp2((so_far - base) * scale);
        const float zero = base * scale;
        state.most[half][lane] = now;
        for (int tile = 0; tile < kTile / 8; ++tile) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            float& score = state.scores[tile][lane].values[i];
            score = Exp2(score * scale - zero);
          }
        }
        const auto rescale = [&](Sums& sums) {
          sums.values[2 * half] *= factor;
          sums.values[2 * half + 1] *= factor;
        };
        for (auto& tile : state.result) rescale(tile[lane]);
        rescale(state.total[lane]);
      });
    }
  }

  // Adds weights · the step's values to the result, and the weights, as they are rounded for that,
  // to their total.
  LINSERVE_KERNEL void AddValues(int step, WarpState& state) const {
    for (int depth = 0; depth < kTile; depth += 16) {
      PerLane<FragmentA> a;
      ForLanes([&](int lane) {
        for (int i = 0; i < 4; ++i) {
          const float* pair = state.scores[depth / 8 + i / 2][lane].values + i % 2 * 2;
          a[lane].registers[i] = Pack<T>(pair[0], pair[1]);
        }
      });
      MultiplyAdd<T>(a, Ones<T>(), state.total);
      for (int column = 0; column < D; column += 16) {
        PerLane<FragmentB> b[2];
        LoadB<D>(ValueTile(step), depth, column, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], state.result[column / 8 + i]);
      }
    }
  }

  // Divides by the total, and writes the warp's rows.
  LINSERVE_KERNEL void Store(int warp) {
    WarpState& state = state_[warp];
    ForLanes([&](int lane) {
      for (float& total : state.total[lane].values) total = Reciprocal(total);
    });
    const int row = 16 * warp;
    // The warp's own queries have done their work.
    StoreSums<D>(
        state.result, shared_ + row * D,
        arguments_.result + (first_ + row) * arguments_.result_stride + head_ * arguments_.dim_head,
        arguments_.result_stride, rows_ - row, arguments_.dim_head,
        [&](int lane, int half, float sum) { return sum * state.total[lane].values[2 * half]; });
  }

  const SoftmaxAttentionArguments<T>& arguments_;
  T* shared_;
  int head_;
  int row_;        // the tile's first, in its sequence
  int64_t first_;  // the same, in all rows
  int rows_;       // of the sequence from it on; none in what a recorded pass has no use for
  int key_count_;
  const T* keys_;  // of the sequence and the head
  const T* values_;
  PerWarp<WarpState, kWarps> state_;
};

}  // namespace linserve::cuda
