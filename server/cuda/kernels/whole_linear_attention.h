#pragma once

#include "cuda/kernels/attend_to_sums.h"
#include "cuda/kernels/key_sums.h"
#include "cuda/kernels/linear_attention_block.h"

namespace linserve::cuda {

// These are the kernels of linear_attention.h that are not causal, and what they share: keys that
// are summed up, and queries that attend to sums.

// Is a block's pass over the keys and values of its sequence and head from `first` to `end`.
template <typename T, int D, FeatureMap kMap>
class KeyPass {
 public:
  using Block = LinearAttentionBlock<T, D>;
  using Sums = KeySums<T, D, Block::E, kMap>;
  static constexpr int kWarps = Block::kWarps;
  static constexpr int kStages = 2;
  static constexpr int kStageElements = Block::kTileElements + Block::kValueElements;
  static constexpr int kElements = kStages * kStageElements;  // of shared memory

  LINSERVE_KERNEL KeyPass(const Block& block, Sums& sums, int first, int end, T* shared)
      : block_(block), sums_(sums), first_(first), end_(end), shared_(shared) {}

  LINSERVE_KERNEL void Compute() {
    const int steps = (end_ - first_ + kTileRows - 1) / kTileRows;
    ForWarps<kWarps>([&](int warp) {
      Load(0, warp);
      sums_.Begin(nullptr, nullptr, warp);
      WaitForCopies<0>();
    });
    for (int step = 0; step < steps; ++step) {
      ForWarps<kWarps>([&](int warp) {
        Load(step + 1, warp);
        sums_.Add(KeyTile(step), ValueTile(step), warp, [&](int row) {
          const int key = first_ + step * kTileRows + row;
          return key < end_ && block_.Counts(key);
        });
        WaitForCopies<0>();
      });
    }
  }

 private:
  LINSERVE_KERNEL T* KeyTile(int step) const { return shared_ + step % kStages * kStageElements; }
  LINSERVE_KERNEL T* ValueTile(int step) const { return KeyTile(step) + Block::kTileElements; }

  LINSERVE_KERNEL void Load(int step, int warp) const {
    const int row = first_ + step * kTileRows;
    block_.CopyKeys(KeyTile(step), row, end_, warp);
    block_.CopyValues(ValueTile(step), row, end_, warp);
    CommitCopies();
  }

  const Block& block_;
  Sums& sums_;
  int first_;  // row of the sequence
  int end_;
  T* shared_;
};

// Lets the block's queries from `first` to `end` of the sequence attend to means, and to totals if
// these are divided by: softmaxed keys (kExp) add up to 1. They come through two tiles of shared
// memory; prepare(warp) makes means and totals while the first of them comes.
template <FeatureMap kMap, typename T, int D, typename Prepare>
LINSERVE_KERNEL void AttendToMeans(const LinearAttentionArguments<T>& arguments,
                                   const LinearAttentionBlock<T, D>& block, int first, int end,
                                   T* tiles, const T* means, const float* totals,
                                   const Prepare& prepare) {
  using Block = LinearAttentionBlock<T, D>;
  const auto tile = [&](int row) {
    return tiles + (row - first) / kTileRows % 2 * Block::kTileElements;
  };
  const auto load = [&](int row, int warp) {
    block.CopyQueries(tile(row), row, end, warp);
    CommitCopies();
  };
  ForWarps<Block::kWarps>([&](int warp) {
    load(first, warp);
    prepare(warp);
    WaitForCopies<0>();
  });
  for (int row = first; row < end; row += kTileRows) {
    ForWarps<Block::kWarps>([&](int warp) {
      load(row + kTileRows, warp);
      AttendToSums<T, D, Block::E, kMap, false> rows(tile(row), 16 * warp,
                                                     FeatureScales{totals, nullptr, nullptr});
      rows.AddBefore(means);
      rows.Store(arguments, tile(row), block.Result(row), end - row);
      WaitForCopies<0>();
    });
  }
}

template <typename T, int D, FeatureMap kMap>
class SumKeys {
 public:
  using Block = LinearAttentionBlock<T, D>;
  using Pass = KeyPass<T, D, kMap>;
  static constexpr int kWarps = Block::kWarps;
  static constexpr int kBlocks = D > 64 ? 3 : 4;  // on a multiprocessor, for which it has registers
  static constexpr int kSharedBytes = Pass::kElements * static_cast<int>(sizeof(T));
  static constexpr int kFloats = Pass::Sums::kFloats;

  LINSERVE_KERNEL static void Run(const LinearAttentionArguments<T>& arguments,
                                  const BlockIndex& at, const SharedMemory<T>& shared) {
    const Block block(arguments, at);
    const int first = at.x * arguments.part_rows;
    const int length = block.keys();
    // The first part runs for a sequence without keys, too, and says that there are none.
    if (first >= length && first > 0) return;
    const int end = first + arguments.part_rows;
    typename Pass::Sums sums(shared.floats);
    Pass(block, sums, first, end < length ? end : length, shared.tiles).Compute();
    ForWarps<kWarps>([&](int warp) {
      sums.Store(block.Logs(arguments.logs, at.x, arguments.parts),
                 block.Means(arguments.means, at.x, arguments.parts), warp);
    });
  }
};

template <typename T, int D, FeatureMap kMap>
class WholeLinearAttention {
 public:
  using Block = LinearAttentionBlock<T, D>;
  using Pass = KeyPass<T, D, kMap>;
  static constexpr int kWarps = Block::kWarps;
  static constexpr int kBlocks = D > 64 ? 3 : 4;
  static constexpr int kSharedBytes =
      (Pass::kElements + Block::kMeanElements) * static_cast<int>(sizeof(T));
  static constexpr int kFloats = Pass::Sums::kFloats;

  LINSERVE_KERNEL static void Run(const LinearAttentionArguments<T>& arguments,
                                  const BlockIndex& at, const SharedMemory<T>& shared) {
    const Block block(arguments, at);
    if (block.queries() == 0) return;
    typename Pass::Sums sums(shared.floats);
    Pass(block, sums, 0, block.keys(), shared.tiles).Compute();
    T* means = shared.tiles + Pass::kElements;
    // Queries lie where the keys were.
    AttendToMeans<kMap>(arguments, block, 0, block.queries(), shared.tiles, means,
                        sums.Scales().scales, [&](int warp) {
                          sums.StoreTile(means, warp);
                          sums.StoreScales(warp);
                        });
  }
};

template <typename T, int D, FeatureMap kMap>
class AttendToKeys {
 public:
  using Block = LinearAttentionBlock<T, D>;
  static constexpr int E = Block::E;
  static constexpr int kWarps = Block::kWarps;
  static constexpr int kBlocks = 4;
  static constexpr int kSharedBytes =
      (2 * Block::kTileElements + Block::kMeanElements) * static_cast<int>(sizeof(T));
  static constexpr int kFloats = D;

  LINSERVE_KERNEL static void Run(const LinearAttentionArguments<T>& arguments,
                                  const BlockIndex& at, const SharedMemory<T>& shared) {
    const Block block(arguments, at);
    const int first = at.x * arguments.query_rows;
    if (first >= block.queries()) return;
    const int end = first + arguments.query_rows;
    T* means = shared.tiles + 2 * Block::kTileElements;
    AttendToMeans<kMap>(arguments, block, first, end < block.queries() ? end : block.queries(),
                        shared.tiles, means, shared.floats, [&](int warp) {
                          LoadSums(block.Logs(arguments.logs_before, 0, 1),
                                   block.Means(arguments.means_before, 0, 1), means, shared.floats,
                                   warp);
                        });
  }

 private:
  LINSERVE_KERNEL static void LoadSums(const float* logs, const float* means, T* tile,
                                       float* totals, int warp) {
    constexpr int kThreads = kWarps * kLanes;
    ForLanes([&](int lane) {
      const int thread = warp * kLanes + lane;
      for (int i = thread; i < D; i += kThreads) totals[i] = Exp2(logs[i]);
      for (int i = thread; i < D * E; i += kThreads) {
        const int feature = i / E;
        const int column = i % E;
        tile[Tile<E>::Offset(feature, column / 8) + column % 8] = T(means[feature * D + column]);
      }
    });
  }
};

}  // namespace linserve::cuda
