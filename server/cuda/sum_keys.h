#pragma once

#include "cuda/attend_to_sums.h"
#include "cuda/key_sums.h"
#include "cuda/linear_attention_block.h"

namespace linserve::cuda {

// The kernels of linear_attention.h for what a segment of keys adds up to, and for queries that
// attend to all keys.

template <typename T, int D>
class SumKeys {
 public:
  using Block = LinearAttentionBlock<T, D>;
  static constexpr int E = Block::E;
  static constexpr int kWarps = Block::kWarps;
  static constexpr int kBlocks = D > 64 ? 3 : 4;  // on a multiprocessor, for which it has registers
  static constexpr int kStages = 2;
  static constexpr int kStageElements = Block::kTileElements + Block::kValueElements;
  static constexpr int kSharedBytes = kStages * kStageElements * static_cast<int>(sizeof(T));
  static constexpr int kFloats = KeySums<T, D, E>::kFloats;

  LINSERVE_KERNEL static void Run(const LinearAttentionArguments<T>& arguments,
                                  const BlockIndex& at, T* shared, float* floats) {
    const Block block(arguments, at);
    const int first = at.x * arguments.segment_rows;
    const int length = block.keys();
    // Of a sequence without keys the first segment says so.
    if (first >= length && first > 0) return;
    const int end = first + arguments.segment_rows;
    SumKeys keys(arguments.map, block, first, end < length ? end : length, shared, floats);
    keys.Compute();
    ForWarps<kWarps>([&](int warp) {
      keys.sums_.Store(block.Logs(arguments.logs, at.x, arguments.segments),
                       block.Means(arguments.means, at.x, arguments.segments), warp);
    });
  }

 private:
  LINSERVE_KERNEL SumKeys(FeatureMap map, const Block& block, int first, int end, T* shared,
                          float* floats)
      : block_(block), sums_(map, floats), first_(first), end_(end), shared_(shared) {}

  LINSERVE_KERNEL T* KeyTile(int step) const { return shared_ + step % kStages * kStageElements; }
  LINSERVE_KERNEL T* ValueTile(int step) const { return KeyTile(step) + Block::kTileElements; }

  LINSERVE_KERNEL void Load(int step, int warp) const {
    const int row = first_ + step * kTileRows;
    block_.CopyKeys(KeyTile(step), row, end_, warp);
    block_.CopyValues(ValueTile(step), row, end_, warp);
    CommitCopies();
  }

  LINSERVE_KERNEL void Compute() {
    const int steps = (end_ - first_ + kTileRows - 1) / kTileRows;
    ForWarps<kWarps>([&](int warp) {
      Load(0, warp);
      sums_.Begin(nullptr, nullptr, warp);
      WaitForCopies<0>();
    });
    for (int step = 0; step < steps; ++step) {
      const auto counts = [&](int row) {
        const int key = first_ + step * kTileRows + row;
        return key < end_ && block_.Counts(key);
      };
      ForWarps<kWarps>([&](int warp) {
        Load(step + 1, warp);
        sums_.FindMost(KeyTile(step), warp, counts);
      });
      ForWarps<kWarps>([&](int warp) { sums_.Weigh(KeyTile(step), warp, counts); });
      ForWarps<kWarps>([&](int warp) { sums_.Advance(warp); });
      ForWarps<kWarps>([&](int warp) {
        sums_.Add(KeyTile(step), ValueTile(step), warp);
        WaitForCopies<0>();
      });
    }
  }

  const Block& block_;
  KeySums<T, D, E> sums_;
  int first_;  // row of the sequence
  int end_;
  T* shared_;
};

template <typename T, int D>
class AttendToKeys {
 public:
  using Block = LinearAttentionBlock<T, D>;
  static constexpr int E = Block::E;
  static constexpr int kWarps = Block::kWarps;
  static constexpr int kBlocks = 4;  // on a multiprocessor, for which it has registers
  static constexpr int kSharedBytes =
      (Block::kTileElements + Block::kMeanElements) * static_cast<int>(sizeof(T));
  static constexpr int kFloats = D;

  LINSERVE_KERNEL static void Run(const LinearAttentionArguments<T>& arguments,
                                  const BlockIndex& at, T* shared, float* floats) {
    const Block block(arguments, at);
    const int row = at.x * kTileRows;
    if (row >= block.queries()) return;
    T* queries = shared;
    T* means = shared + Block::kTileElements;
    ForWarps<kWarps>([&](int warp) {
      block.CopyQueries(queries, row, block.queries(), warp);
      CommitCopies();
      LoadSums(arguments, block, means, floats, warp);
      WaitForCopies<0>();
    });
    ForWarps<kWarps>([&](int warp) {
      const auto before = [&](int feature) { return floats[feature]; };
      const auto nothing = [](int) { return kLogOfNothing; };
      AttendToSums<T, D, E> rows;
      rows.Begin(arguments.map, queries, 16 * warp, before, nothing);
      rows.AddBefore(means, before);
      rows.Store(arguments, block.Result(row), block.queries() - row);
    });
  }

 private:
  LINSERVE_KERNEL static void LoadSums(const LinearAttentionArguments<T>& arguments,
                                       const Block& block, T* tile, float* logs, int warp) {
    const float* all = block.Logs(arguments.logs_before, 0, 1);
    const float* means = block.Means(arguments.means_before, 0, 1);
    constexpr int kThreads = kWarps * kLanes;
    ForLanes([&](int lane) {
      const int thread = warp * kLanes + lane;
      for (int i = thread; i < D; i += kThreads) logs[i] = arguments.mean_of_keys ? 0 : all[i];
      for (int i = thread; i < D * E; i += kThreads) {
        const int feature = i / E;
        const int column = i % E;
        tile[Tile<E>::Offset(feature, column / 8) + column % 8] = T(means[feature * D + column]);
      }
    });
  }
};

}  // namespace linserve::cuda
