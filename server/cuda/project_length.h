#pragma once

#include <cstdint>

#include "cuda/tile_rows.h"

namespace linserve::cuda {

// Computes Linformer's projection along the sequence for all sequences of a batch in one launch:
//   result[b, s, :] = sum over t < lengths[b] of projection[t, s] · rows[starts[b] + t, :]
// The reference is ProjectLength() of attention/linformer/linformer_attention.h.
//
// A block makes a tile [kTileSlots, kTileWidth] of one sequence's result, or of one part's share
// of it where a few long sequences would leave most of the GPU idle; shares are added up by a
// second kernel, in order, so that results are the same each time. Tiles of the projection and of
// the rows come through a ring of kStages in shared memory while the tensor cores work on earlier
// ones.
//
// For a sequence of m rows it computes 2 · m · slots · width FLOPs, and must move
// (m · (slots + width) + slots · width) · 2 bytes; tiles of the same sequence meet in the L2 cache.

struct ProjectLengthSizes {
  int slots = 0;
  int width = 0;      // a multiple of 8
  int parts = 0;      // of the longest sequence
  int part_rows = 0;  // a multiple of kDepth
};

template <typename T>
struct ProjectLengthArguments {
  const T* rows;  // rows and those of the projection begin at multiples of 16 bytes
  int64_t row_stride;
  const T* projection;  // its rows are read in whole vectors, past their slots
  int64_t projection_stride;
  const int32_t* starts;
  const int32_t* lengths;
  T* result;      // [batch, slots, width]
  float* shares;  // [batch, parts, slots, width] if there are several parts
  ProjectLengthSizes sizes;
};

template <typename T>
class ProjectLength {
 public:
  static constexpr int kTileSlots = 64;
  static constexpr int kTileWidth = 64;
  static constexpr int kDepth = 64;  // rows of the sequence in a stage
  static constexpr int kStages = 3;
  static constexpr int kWarps = 4;
  static constexpr int kStageElements = kDepth * (kTileSlots + kTileWidth);
  static constexpr int kSharedBytes = kStages * kStageElements * static_cast<int>(sizeof(T));

  // Runs the block `at`: x counts tiles of the width, y of the slots, z parts of one sequence after
  // the other.
  LINSERVE_KERNEL static void Run(const ProjectLengthArguments<T>& arguments, const BlockIndex& at,
                                  T* shared) {
    const int sequence = at.z / arguments.sizes.parts;
    const int first = at.z % arguments.sizes.parts * arguments.sizes.part_rows;
    const int length = arguments.lengths[sequence];
    if (first >= length && first > 0) return;
    ProjectLength block(arguments, at, sequence, first, shared);
    block.Compute();
    block.Store();
  }

 private:
  // A warp makes 32 slots and 32 columns, as 2 x 4 tiles of the tensor cores.
  static constexpr int kWarpTile = 32;
  struct WarpSums {
    PerLane<Sums> tiles[2][4];
  };

  LINSERVE_KERNEL ProjectLength(const ProjectLengthArguments<T>& arguments, const BlockIndex& at,
                                int sequence, int first, T* shared)
      : arguments_(arguments),
        sequence_(sequence),
        part_(at.z % arguments.sizes.parts),
        slot_(at.y * kTileSlots),
        column_(at.x * kTileWidth),
        first_(first),
        start_(arguments.starts[sequence]),
        shared_(shared) {
    const int end = first + arguments.sizes.part_rows;
    const int length = arguments.lengths[sequence];
    rows_ = (end < length ? end : length) - first;
  }

  LINSERVE_KERNEL T* ProjectionStage(int step) const {
    return shared_ + step % kStages * kStageElements;
  }
  LINSERVE_KERNEL T* RowStage(int step) const {
    return ProjectionStage(step) + kDepth * kTileSlots;
  }

  // Makes a warp's share of the copies of one stage; rows past the part's last are zeros.
  LINSERVE_KERNEL void Load(int step, int warp) const {
    using Layout = Tile<kTileSlots>;
    static_assert(kTileSlots == kTileWidth);
    constexpr int kThreads = kWarps * kLanes;
    static_assert(kThreads % Layout::kVectors == 0);  // a thread has one column of vectors
    ForLanes([&](int lane) {
      const int thread = warp * kLanes + lane;
      const int vector = thread % Layout::kVectors;
      const int slot = slot_ + vector * Layout::kVector;
      const int column = column_ + vector * Layout::kVector;
      const bool slots = slot < arguments_.sizes.slots;
      const bool columns = column < arguments_.sizes.width;
      const T* projection = arguments_.projection + (slots ? slot : 0);
      const T* rows = arguments_.rows + start_ * arguments_.row_stride + (columns ? column : 0);
      LINSERVE_UNROLL
      for (int i = 0; i < kDepth * Layout::kVectors / kThreads; ++i) {
        const int row = (i * kThreads + thread) / Layout::kVectors;
        const int within = step * kDepth + row;
        const bool real = within < rows_;
        const int64_t t = real ? first_ + within : 0;
        CopyVector(ProjectionStage(step) + Layout::Offset(row, vector),
                   projection + t * arguments_.projection_stride, real && slots);
        CopyVector(RowStage(step) + Layout::Offset(row, vector), rows + t * arguments_.row_stride,
                   real && columns);
      }
    });
    CommitCopies();
  }

  LINSERVE_KERNEL void Compute() {
    const int steps = (rows_ + kDepth - 1) / kDepth;
    ForWarps<kWarps>([&](int warp) {
      for (int step = 0; step < kStages - 1; ++step) Load(step, warp);
      ForLanes([&](int lane) {
        for (auto& row : sums_[warp].tiles) {
          for (auto& tile : row) tile[lane] = {};
        }
      });
      WaitForCopies<kStages - 2>();
    });
    for (int step = 0; step < steps; ++step) {
      ForWarps<kWarps>([&](int warp) {
        // This loads into the stage that all have left behind.
        Load(step + kStages - 1, warp);
        Multiply(step, warp);
        WaitForCopies<kStages - 2>();
      });
    }
    // The last stages were filled with zeros, and nothing may come after what Store() puts there.
    ForWarps<kWarps>([&](int) { WaitForCopies<0>(); });
  }

  LINSERVE_KERNEL static int SlotOf(int warp) { return warp / 2 * kWarpTile; }
  LINSERVE_KERNEL static int ColumnOf(int warp) { return warp % 2 * kWarpTile; }

  LINSERVE_KERNEL void Multiply(int step, int warp) {
    for (int depth = 0; depth < kDepth; depth += 16) {
      PerLane<FragmentA> a[2];
      // These load the projection's transpose.
      for (int i = 0; i < 2; ++i) {
        LoadTransposedA<kTileSlots>(ProjectionStage(step), depth, SlotOf(warp) + 16 * i, a[i]);
      }
      for (int j = 0; j < 4; j += 2) {
        PerLane<FragmentB> b[2];
        LoadB<kTileWidth>(RowStage(step), depth, ColumnOf(warp) + 8 * j, b);
        for (int i = 0; i < 2; ++i) {
          for (int k = 0; k < 2; ++k) MultiplyAdd<T>(a[i], b[k], sums_[warp].tiles[i][j + k]);
        }
      }
    }
  }

  LINSERVE_KERNEL void Store() {
    ForWarps<kWarps>([&](int warp) {
      const int column = column_ + ColumnOf(warp);
      LINSERVE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const PerLane<Sums>* tiles = sums_[warp].tiles[i];
        const int slot = slot_ + SlotOf(warp) + 16 * i;
        if (arguments_.sizes.parts > 1) {
          StoreShare(tiles, slot, column);
        } else {
          // The ring has done its work.
          StoreResult(tiles, slot, column, shared_ + warp * 16 * kWarpTile);
        }
      }
    });
  }

  // Writes 16 slots of the result, from this slot and column on.
  LINSERVE_KERNEL void StoreResult(const PerLane<Sums>* tiles, int slot, int column,
                                   T* scratch) const {
    const ProjectLengthSizes& sizes = arguments_.sizes;
    T* to = arguments_.result +
            (static_cast<int64_t>(sequence_) * sizes.slots + slot) * sizes.width + column;
    StoreSums<kWarpTile>(tiles, scratch, to, sizes.width, sizes.slots - slot, sizes.width - column,
                         [](int, int, float sum) { return sum; });
  }

  // Writes them of a part's share.
  LINSERVE_KERNEL void StoreShare(const PerLane<Sums>* tiles, int slot, int column) const {
    const ProjectLengthSizes& sizes = arguments_.sizes;
    const int64_t share = static_cast<int64_t>(sequence_) * sizes.parts + part_;
    float* to = arguments_.shares + (share * sizes.slots + slot) * sizes.width + column;
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int tile = 0; tile < kWarpTile / 8; ++tile) {
        LINSERVE_UNROLL
        for (int pair = 0; pair < 4; pair += 2) {
          const int row = SumRow(lane, pair);
          const int first = 8 * tile + SumColumn(lane, pair);
          if (slot + row >= sizes.slots || column + first >= sizes.width) continue;
          const float* sums = tiles[tile][lane].values + pair;
          StoreVector(to + static_cast<int64_t>(row) * sizes.width + first,
                      Vector<float, 2>{sums[0], sums[1]});
        }
      }
    });
  }

  const ProjectLengthArguments<T>& arguments_;
  int sequence_;
  int part_;
  int slot_;
  int column_;
  int first_;      // row of the sequence
  int64_t start_;  // of the sequence
  int rows_;       // of the part that there are
  T* shared_;
  PerWarp<WarpSums, kWarps> sums_;
};

// Adds up element `index` of the result [batch, slots, width] from the shares of its sequence's
// parts.
template <typename T>
LINSERVE_KERNEL void AddShares(const ProjectLengthArguments<T>& arguments, int64_t index) {
  const ProjectLengthSizes& sizes = arguments.sizes;
  const int64_t elements = static_cast<int64_t>(sizes.slots) * sizes.width;
  const int64_t sequence = index / elements;
  const int length = arguments.lengths[sequence];
  const float* share = arguments.shares + sequence * sizes.parts * elements + index % elements;
  float sum = 0;
  for (int first = 0; first < length; first += sizes.part_rows, share += elements) sum += *share;
  arguments.result[index] = T(sum);
}

}  // namespace linserve::cuda
