#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/tile_rows.h"

namespace linserve::cuda {

// Computes the attention of packed or padded queries over the projected keys of their own sequence:
//   result[i, h] = softmax(queries[i, h] · keys[b, :, h]ᵀ · scale) · values[b, :, h]
// The reference is AttendToSlots() of attention/linformer/linformer_attention.h.
//
// A block takes 128 queries of one sequence and head, a warp 16 of them, and goes over the slots in
// tiles of 64 with a running softmax, so that no score leaves the registers (the scheme of Dao
// 2023, arXiv:2307.08691). Queries are read and results written once; keys and values, which all
// blocks of a sequence read, stay in the L2 cache.
//
// For a sequence of m rows and each head it computes 4 · m · slots · D FLOPs, and must move
// (2 · m + 2 · slots) · D · 2 bytes.

template <typename T>
struct AttendToSlotsArguments {
  const T* queries;  // all rows begin at multiples of 16 bytes
  int64_t query_stride;
  const T* keys;  // [batch, slots, kv_heads · D]
  const T* values;
  int64_t key_batch_stride;
  int64_t key_stride;
  int64_t value_batch_stride;
  int64_t value_stride;
  const int32_t* starts;
  const int32_t* lengths;
  const int32_t* tiles;  // of the queries: a sequence and its row, each
  T* result;             // [rows, heads · D]
  int64_t result_stride;
  int slots;
  int dim_head;       // a multiple of 8
  bool shared_heads;  // one head of keys and values serves all
  float scale;
};

// D is the number of features of a head, rounded up: 32, 64, 96 or 128.
template <typename T, int D>
class AttendToSlots {
 public:
  static constexpr int kQueries = 128;
  static constexpr int kSlots = 64;
  static constexpr int kWarps = 8;
  static constexpr int kBlocks = D > 64 ? 1 : 2;  // on a multiprocessor, for which it has registers
  static constexpr int kStages = 2;               // of keys and values
  static constexpr int kTileElements = kSlots * D;
  static constexpr int kQueryElements = kQueries * D;
  static constexpr int kSharedBytes =
      (kQueryElements + 2 * kStages * kTileElements) * static_cast<int>(sizeof(T));

  // Runs the block `at`: x counts tiles of the queries, y heads.
  LINSERVE_KERNEL static void Run(const AttendToSlotsArguments<T>& arguments, const BlockIndex& at,
                                  T* shared) {
    const int sequence = arguments.tiles[2 * at.x];
    const int row = arguments.tiles[2 * at.x + 1];
    // The tiles of a recorded pass are for other lengths, too.
    if (row >= arguments.lengths[sequence]) return;
    AttendToSlots block(arguments, sequence, row, at.y, shared);
    block.Compute();
    block.Store();
  }

 private:
  static_assert(D % 32 == 0 && D <= 128);

  // Holds what a warp keeps of its 16 queries. A lane has two rows of them: `half` 0 and 1.
  struct WarpState {
    PerLane<Sums> scores[kSlots / 8];
    PerLane<Sums> result[D / 8];
    PerLane<float> most[2];   // the largest score so far
    PerLane<float> total[2];  // of the weights
  };

  LINSERVE_KERNEL AttendToSlots(const AttendToSlotsArguments<T>& arguments, int sequence, int row,
                                int head, T* shared)
      : arguments_(arguments),
        rows_(arguments.lengths[sequence] - row),
        start_(arguments.starts[sequence] + row),
        column_(head * arguments.dim_head),
        shared_(shared) {
    const int kv_column = arguments.shared_heads ? 0 : column_;
    keys_ = arguments.keys + sequence * arguments.key_batch_stride + kv_column;
    values_ = arguments.values + sequence * arguments.value_batch_stride + kv_column;
  }

  LINSERVE_KERNEL T* QueryTile() const { return shared_; }
  LINSERVE_KERNEL T* KeyTile(int step) const {
    return shared_ + kQueryElements + step % kStages * 2 * kTileElements;
  }
  LINSERVE_KERNEL T* ValueTile(int step) const { return KeyTile(step) + kTileElements; }

  LINSERVE_KERNEL void LoadSlots(int step, int warp) const {
    const int slot = step * kSlots;
    const int count = arguments_.slots - slot;  // may be none
    const int64_t from = count > 0 ? slot : 0;
    CopyRows<D, kWarps>(KeyTile(step), keys_ + from * arguments_.key_stride, arguments_.key_stride,
                        count, warp, arguments_.dim_head);
    CopyRows<D, kWarps>(ValueTile(step), values_ + from * arguments_.value_stride,
                        arguments_.value_stride, count, warp, arguments_.dim_head);
    CommitCopies();
  }

  LINSERVE_KERNEL void Compute() {
    const int steps = (arguments_.slots + kSlots - 1) / kSlots;
    ForWarps<kWarps>([&](int warp) {
      CopyRows<D, kWarps, kQueries>(QueryTile(),
                                    arguments_.queries + start_ * arguments_.query_stride + column_,
                                    arguments_.query_stride, rows_, warp, arguments_.dim_head);
      LoadSlots(0, warp);
      Clear(state_[warp]);
      WaitForCopies<0>();
    });
    for (int step = 0; step < steps; ++step) {
      ForWarps<kWarps>([&](int warp) {
        LoadSlots(step + 1, warp);
        if (16 * warp < rows_) {
          Score(step, warp);
          if ((step + 1) * kSlots > arguments_.slots) HideMissing(step, state_[warp]);
          Weigh(state_[warp]);
          AddValues(step, state_[warp]);
        }
        WaitForCopies<0>();
      });
    }
  }

  LINSERVE_KERNEL static void Clear(WarpState& state) {
    ForLanes([&](int lane) {
      for (auto& tile : state.result) tile[lane] = {};
      for (int half = 0; half < 2; ++half) {
        state.most[half][lane] = -INFINITY;
        state.total[half][lane] = 0;
      }
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
      LoadA<D>(QueryTile(), 16 * warp, depth, a);
      for (int slot = 0; slot < kSlots; slot += 16) {
        PerLane<FragmentB> b[2];
        LoadTransposedB<D>(KeyTile(step), slot, depth, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], state.scores[slot / 8 + i]);
      }
    }
  }

  // Takes the scores of slots out that there are not.
  LINSERVE_KERNEL void HideMissing(int step, WarpState& state) const {
    ForLanes([&](int lane) {
      const int left = arguments_.slots - step * kSlots - SumColumn(lane, 0);
      LINSERVE_UNROLL
      for (int tile = 0; tile < kSlots / 8; ++tile) {
        for (int i = 0; i < 4; ++i) {
          if (8 * tile + i % 2 >= left) state.scores[tile][lane].values[i] = -INFINITY;
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
      PerLane<float> total;
      ForLanes([&](int lane) {
        most[lane] = -INFINITY;
        for (int tile = 0; tile < kSlots / 8; ++tile) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            most[lane] = fmaxf(most[lane], state.scores[tile][lane].values[i]);
          }
        }
      });
      OverRow(most, [](float a, float b) { return fmaxf(a, b); });
      ForLanes([&](int lane) {
        const float before = state.most[half][lane];
        const float now = fmaxf(before, most[lane]);
        const float factor = Exp2((before - now) * scale);
        state.most[half][lane] = now;
        total[lane] = 0;
        for (int tile = 0; tile < kSlots / 8; ++tile) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            float& score = state.scores[tile][lane].values[i];
            score = Exp2(score * scale - now * scale);
            total[lane] += score;
          }
        }
        state.total[half][lane] = state.total[half][lane] * factor + total[lane];
        for (auto& tile : state.result) {
          tile[lane].values[2 * half] *= factor;
          tile[lane].values[2 * half + 1] *= factor;
        }
      });
    }
  }

  // Adds weights · the step's values to the result.
  LINSERVE_KERNEL void AddValues(int step, WarpState& state) const {
    for (int depth = 0; depth < kSlots; depth += 16) {
      PerLane<FragmentA> a;
      ForLanes([&](int lane) {
        for (int i = 0; i < 4; ++i) {
          const float* pair = state.scores[depth / 8 + i / 2][lane].values + i % 2 * 2;
          a[lane].registers[i] = Pack<T>(pair[0], pair[1]);
        }
      });
      for (int column = 0; column < D; column += 16) {
        PerLane<FragmentB> b[2];
        LoadB<D>(ValueTile(step), depth, column, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], state.result[column / 8 + i]);
      }
    }
  }

  LINSERVE_KERNEL void Store() {
    ForWarps<kWarps>([&](int warp) {
      if (16 * warp >= rows_) return;
      WarpState& state = state_[warp];
      for (auto& total : state.total) {
        OverRow(total, [](float a, float b) { return a + b; });
        ForLanes([&](int lane) { total[lane] = Reciprocal(total[lane]); });
      }
      const int row = 16 * warp;
      // The warp's own queries have done their work.
      StoreSums<D>(state.result, QueryTile() + row * D,
                   arguments_.result + (start_ + row) * arguments_.result_stride + column_,
                   arguments_.result_stride, rows_ - row, arguments_.dim_head,
                   [&](int lane, int half, float sum) { return sum * state.total[half][lane]; });
    });
  }

  const AttendToSlotsArguments<T>& arguments_;
  int rows_;  // of the sequence from the block's first on
  int64_t start_;
  int column_;
  T* shared_;
  const T* keys_;
  const T* values_;
  PerWarp<WarpState, kWarps> state_;
};

}  // namespace linserve::cuda
