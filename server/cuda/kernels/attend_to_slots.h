#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/kernels/tile_rows.h"

namespace linserve::cuda {

// Computes the attention of packed or padded queries over the projected keys of their own sequence:
//   result[i, h] = softmax(queries[i, h] · keys[b, :, h]ᵀ · scale) · values[b, :, h]
// The reference is AttendToSlots() of attention/linformer/linformer_attention.h.
//
// A block takes tiles of 128 queries of one sequence and head, one after the other, a warp 16
// queries of each, and goes over the slots in tiles of 64 with a running softmax, so that no score
// leaves the registers (the scheme of Dao 2023, arXiv:2307.08691). While it computes with a tile of
// slots, the next one comes, and with the last one the next tile of queries. Queries are read and
// results written once; keys and values, which all tiles of a sequence read, stay in the L2 cache.
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
  int items;             // tiles times heads: the heads of a tile are neighbours
  int block_items;       // that a block takes, 1 if it has no room for more
  int heads;
  T* result;  // [rows, heads · D]
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
  // Wide heads leave no room for more: a multiprocessor may have 99 KiB of shared memory for a
  // block.
  static constexpr int kQueryStages = D > 64 ? 1 : 2;
  static constexpr int kTileElements = kSlots * D;
  static constexpr int kQueryElements = kQueries * D;
  static constexpr int kSharedBytes =
      (kQueryStages * kQueryElements + 2 * kStages * kTileElements) * static_cast<int>(sizeof(T));

  // Runs the block `at`, of which x counts.
  LINSERVE_KERNEL static void Run(const AttendToSlotsArguments<T>& arguments, const BlockIndex& at,
                                  T* shared) {
    const int first = at.x * arguments.block_items;
    const int left = arguments.items - first;
    AttendToSlots block(arguments, first,
                        left < arguments.block_items ? left : arguments.block_items, shared);
    block.Compute();
  }

 private:
  static_assert(D % 32 == 0 && D <= 128);

  // Is a tile of queries of one head.
  struct Work {
    int64_t start;  // the tile's first row
    int rows;       // of the sequence from it on; none in what a recorded pass has no use for
    int sequence;
    int head;
  };

  // Holds what a warp keeps of its 16 queries. A lane has two rows of them: `half` 0 and 1.
  struct WarpState {
    PerLane<Sums> scores[kSlots / 8];
    PerLane<Sums> result[D / 8];
    PerLane<Sums> total;     // of the weights: the same in all columns
    PerLane<float> most[2];  // the largest score so far
    Work now;
    Work next;
  };

  LINSERVE_KERNEL AttendToSlots(const AttendToSlotsArguments<T>& arguments, int first, int items,
                                T* shared)
      : arguments_(arguments), first_(first), items_(items), shared_(shared) {}

  LINSERVE_KERNEL T* QueryTile(int item) const {
    return shared_ + item % kQueryStages * kQueryElements;
  }
  LINSERVE_KERNEL T* KeyTile(int stage) const {
    return shared_ + kQueryStages * kQueryElements + stage % kStages * 2 * kTileElements;
  }
  LINSERVE_KERNEL T* ValueTile(int stage) const { return KeyTile(stage) + kTileElements; }

  LINSERVE_KERNEL Work WorkOf(int item) const {
    const int tile = (first_ + item) / arguments_.heads;
    const int sequence = arguments_.tiles[2 * tile];
    const int row = arguments_.tiles[2 * tile + 1];
    // The tiles of a recorded pass are for other lengths, too.
    return {arguments_.starts[sequence] + row, arguments_.lengths[sequence] - row, sequence,
            (first_ + item) % arguments_.heads};
  }

  LINSERVE_KERNEL void LoadQueries(int item, const Work& work, int warp) const {
    const T* from =
        arguments_.queries + work.start * arguments_.query_stride + work.head * arguments_.dim_head;
    CopyRows<D, kWarps, kQueries>(QueryTile(item), from, arguments_.query_stride, work.rows, warp,
                                  arguments_.dim_head);
  }

  LINSERVE_KERNEL void LoadSlots(int stage, int step, const Work& work, int warp) const {
    const int64_t slot = step * kSlots;
    const int count = work.rows > 0 ? arguments_.slots - step * kSlots : 0;
    const int column = arguments_.shared_heads ? 0 : work.head * arguments_.dim_head;
    const T* keys = arguments_.keys + work.sequence * arguments_.key_batch_stride +
                    slot * arguments_.key_stride + column;
    const T* values = arguments_.values + work.sequence * arguments_.value_batch_stride +
                      slot * arguments_.value_stride + column;
    CopyRows<D, kWarps>(KeyTile(stage), keys, arguments_.key_stride, count, warp,
                        arguments_.dim_head);
    CopyRows<D, kWarps>(ValueTile(stage), values, arguments_.value_stride, count, warp,
                        arguments_.dim_head);
  }

  LINSERVE_KERNEL void Compute() {
    const int steps = (arguments_.slots + kSlots - 1) / kSlots;
    ForWarps<kWarps>([&](int warp) {
      state_[warp].next = WorkOf(0);
      LoadQueries(0, state_[warp].next, warp);
      LoadSlots(0, 0, state_[warp].next, warp);
      CommitCopies();
      WaitForCopies<0>();
    });
    int stage = 0;
    for (int item = 0; item < items_; ++item) {
      for (int step = 0; step < steps; ++step, ++stage) {
        ForWarps<kWarps>([&](int warp) {
          WarpState& state = state_[warp];
          if (step == 0) Begin(item, state);
          const bool last = step + 1 == steps;
          if (!last) {
            LoadSlots(stage + 1, step + 1, state.now, warp);
          } else if (item + 1 < items_) {
            LoadQueries(item + 1, state.next, warp);
            LoadSlots(stage + 1, 0, state.next, warp);
          }
          CommitCopies();
          if (16 * warp < state.now.rows) {
            Score(item, stage, warp);
            if ((step + 1) * kSlots > arguments_.slots) HideMissing(step, state);
            Weigh(state);
            AddValues(stage, state);
            if (last) Store(item, warp);
          }
          WaitForCopies<0>();
        });
      }
    }
  }

  // The next tile's place is read now, so that it is there when the tile is loaded.
  LINSERVE_KERNEL void Begin(int item, WarpState& state) const {
    state.now = state.next;
    if (item + 1 < items_) state.next = WorkOf(item + 1);
    ForLanes([&](int lane) {
      for (auto& tile : state.result) tile[lane] = {};
      state.total[lane] = {};
      for (auto& most : state.most) most[lane] = -INFINITY;
    });
  }

  // Multiplies queries [16 · warp, + 16) by the transpose of the stage's keys.
  LINSERVE_KERNEL void Score(int item, int stage, int warp) {
    WarpState& state = state_[warp];
    ForLanes([&](int lane) {
      for (auto& tile : state.scores) tile[lane] = {};
    });
    for (int depth = 0; depth < D; depth += 16) {
      PerLane<FragmentA> a;
      LoadA<D>(QueryTile(item), 16 * warp, depth, a);
      for (int slot = 0; slot < kSlots; slot += 16) {
        PerLane<FragmentB> b[2];
        LoadTransposedB<D>(KeyTile(stage), slot, depth, b);
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
        for (int tile = 0; tile < kSlots / 8; ++tile) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            float& score = state.scores[tile][lane].values[i];
            score = Exp2(score * scale - now * scale);
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

  // Adds weights · the stage's values to the result, and the weights, as they are rounded for that,
  // to their total.
  LINSERVE_KERNEL void AddValues(int stage, WarpState& state) const {
    for (int depth = 0; depth < kSlots; depth += 16) {
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
        LoadB<D>(ValueTile(stage), depth, column, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], state.result[column / 8 + i]);
      }
    }
  }

  // Divides by the total, and writes the warp's rows.
  LINSERVE_KERNEL void Store(int item, int warp) {
    WarpState& state = state_[warp];
    ForLanes([&](int lane) {
      for (float& total : state.total[lane].values) total = Reciprocal(total);
    });
    const int row = 16 * warp;
    // The warp's own queries have done their work.
    StoreSums<D>(
        state.result, QueryTile(item) + row * D,
        arguments_.result + (state.now.start + row) * arguments_.result_stride +
            state.now.head * arguments_.dim_head,
        arguments_.result_stride, state.now.rows - row, arguments_.dim_head,
        [&](int lane, int half, float sum) { return sum * state.total[lane].values[2 * half]; });
  }

  const AttendToSlotsArguments<T>& arguments_;
  int first_;  // of the block's items
  int items_;
  T* shared_;
  PerWarp<WarpState, kWarps> state_;
};

}  // namespace linserve::cuda
