#pragma once

#include "cuda/kernels/attend_to_sums.h"
#include "cuda/kernels/key_sums.h"
#include "cuda/kernels/linear_attention_block.h"

namespace linserve::cuda {

// Is the kernel of linear_attention.h that goes over a part of a sequence's rows, in order.
template <typename T, int D, FeatureMap kMap>
class CausalLinearAttention {
 public:
  using Block = LinearAttentionBlock<T, D>;
  static constexpr int E = Block::E;
  static constexpr int kWarps = Block::kWarps;
  static constexpr int kBlocks = D > 64 ? 2 : 3;  // on a multiprocessor, for which it has registers
  static constexpr int kStages = 2;               // of queries, keys and values
  static constexpr int kStageElements = 2 * Block::kTileElements + Block::kValueElements;
  static constexpr int kSharedBytes =
      (kStages * kStageElements + Block::kMeanElements) * static_cast<int>(sizeof(T));
  static constexpr int kFloats = KeySums<T, D, E, kMap>::kFloats;

  LINSERVE_KERNEL static void Run(const LinearAttentionArguments<T>& arguments,
                                  const BlockIndex& at, const SharedMemory<T>& shared) {
    CausalLinearAttention block(arguments, at, shared);
    if (block.first_ < block.end_) block.Compute();
  }

 private:
  LINSERVE_KERNEL CausalLinearAttention(const LinearAttentionArguments<T>& arguments,
                                        const BlockIndex& at, const SharedMemory<T>& shared)
      : arguments_(arguments),
        block_(arguments, at),
        sums_(shared.floats),
        part_(at.x),
        first_(at.x * arguments.part_rows),
        shared_(shared.tiles) {
    const int end = first_ + arguments.part_rows;
    end_ = end < block_.queries() ? end : block_.queries();
  }

  LINSERVE_KERNEL T* Means() const { return shared_; }
  LINSERVE_KERNEL T* QueryTile(int step) const {
    return shared_ + Block::kMeanElements + step % kStages * kStageElements;
  }
  LINSERVE_KERNEL T* KeyTile(int step) const { return QueryTile(step) + Block::kTileElements; }
  LINSERVE_KERNEL T* ValueTile(int step) const { return KeyTile(step) + Block::kTileElements; }

  LINSERVE_KERNEL void Load(int step, int warp) const {
    const int row = first_ + step * kTileRows;
    block_.CopyQueries(QueryTile(step), row, end_, warp);
    block_.CopyKeys(KeyTile(step), row, end_, warp);
    block_.CopyValues(ValueTile(step), row, end_, warp);
    CommitCopies();
  }

  LINSERVE_KERNEL void Begin(int warp) {
    const bool later = part_ > 0;
    sums_.Begin(later ? block_.Logs(arguments_.logs_before, part_, arguments_.parts) : nullptr,
                later ? block_.Means(arguments_.means_before, part_, arguments_.parts) : nullptr,
                warp);
  }

  LINSERVE_KERNEL void Compute() {
    const int steps = (end_ - first_ + kTileRows - 1) / kTileRows;
    ForWarps<kWarps>([&](int warp) {
      Load(0, warp);
      Begin(warp);
      WaitForCopies<0>();
    });
    for (int step = 0; step < steps; ++step) {
      ForWarps<kWarps>([&](int warp) {
        Load(step + 1, warp);
        sums_.StoreTile(Means(), warp);
        sums_.Add(KeyTile(step), ValueTile(step), warp, [&](int row) {
          const int key = first_ + step * kTileRows + row;
          return key < end_ && block_.Counts(key);
        });
        sums_.StoreScales(warp);
      });
      ForWarps<kWarps>([&](int warp) {
        Attend(step, warp);
        WaitForCopies<0>();
      });
    }
  }

  LINSERVE_KERNEL void Attend(int step, int warp) {
    const int bucket = arguments_.bucket;
    const int row = first_ + step * kTileRows;
    AttendToSums<T, D, E, kMap, true> queries(QueryTile(step), 16 * warp, sums_.Scales());
    queries.AddBefore(Means());
    queries.AddTile(KeyTile(step), ValueTile(step),
                    [&](int query) { return bucket == 1 ? query + 1 : query & -bucket; });
    queries.Store(arguments_, QueryTile(step), block_.Result(row), end_ - row);
  }

  const LinearAttentionArguments<T>& arguments_;
  Block block_;
  KeySums<T, D, E, kMap> sums_;
  int part_;
  int first_;  // row of the sequence
  int end_;
  T* shared_;
};

}  // namespace linserve::cuda
