#pragma once

#include <cstdint>

#include "cuda/kernels/tile_rows.h"

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
  // With tiles so large the rows are read once for 128 slots, and the projection once for 128
  // columns.
  static constexpr int kTileSlots = 128;
  static constexpr int kTileWidth = 128;
  static constexpr int kDepth = 32;  // rows of the sequence in a stage
  static constexpr int kStages = 4;
  static constexpr int kWarps = 8;
  static constexpr int kBlocks = 2;  // on a multiprocessor, for which it has registers
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
  // A warp makes 64 slots and 32 columns, as 4 x 4 tiles of the tensor cores.
  static constexpr int kWarpSlots = 64;
  static constexpr int kWarpColumns = 32;
  struct WarpState {
    PerLane<Sums> sums[kWarpSlots / 16][kWarpColumns / 8];
    // Where a lane copies from next: its own vector of the first row of the next stage.
    PerLane<const T*> projection;
    PerLane<const T*> rows;
  };

  LINSERVE_KERNEL ProjectLength(const ProjectLengthArguments<T>& arguments, const BlockIndex& at,
                                int sequence, int first, T* shared)
      : arguments_(arguments),
        sequence_(sequence),
        part_(at.z % arguments.sizes.parts),
        slot_(at.y * kTileSlots),
        column_(at.x * kTileWidth),
        first_(first),
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

  // A thread copies one column of vectors, every kThreadRows-th row.
  using Layout = Tile<kTileSlots>;
  static_assert(kTileSlots == kTileWidth);
  static constexpr int kThreadRows = kWarps * kLanes / Layout::kVectors;
  static_assert(kThreadRows % 8 == 0);  // rows so far apart have the same order of vectors
  LINSERVE_KERNEL static int RowOf(int warp, int lane) {
    return (warp * kLanes + lane) / Layout::kVectors;
  }
  LINSERVE_KERNEL static int VectorOf(int lane) { return lane % Layout::kVectors; }

  LINSERVE_KERNEL void Begin(int warp) {
    const int64_t start = arguments_.starts[sequence_];
    WarpState& state = state_[warp];
    ForLanes([&](int lane) {
      const int row = first_ + RowOf(warp, lane);
      const int vector = VectorOf(lane) * Layout::kVector;
      state.projection[lane] =
          arguments_.projection + row * arguments_.projection_stride + slot_ + vector;
      state.rows[lane] = arguments_.rows + (start + row) * arguments_.row_stride + column_ + vector;
      for (auto& tiles : state.sums) {
        for (auto& tile : tiles) tile[lane] = {};
      }
    });
  }

  // Makes a warp's share of the copies of one stage, the next one each time; rows past the part's
  // last are zeros, and so is what lies past the slots or the width.
  LINSERVE_KERNEL void Load(int step, int warp) {
    WarpState& state = state_[warp];
    ForLanes([&](int lane) {
      const int vector = VectorOf(lane);
      const int left = rows_ - step * kDepth - RowOf(warp, lane);
      const int of_projection =
          slot_ + vector * Layout::kVector < arguments_.sizes.slots ? left : 0;
      const int of_rows = column_ + vector * Layout::kVector < arguments_.sizes.width ? left : 0;
      const int place = Layout::Offset(RowOf(warp, lane), vector);
      LINSERVE_UNROLL
      for (int row = 0; row < kDepth; row += kThreadRows) {
        CopyVector(ProjectionStage(step) + place + row * kTileSlots, state.projection[lane],
                   row < of_projection);
        CopyVector(RowStage(step) + place + row * kTileWidth, state.rows[lane], row < of_rows);
        state.projection[lane] += kThreadRows * arguments_.projection_stride;
        state.rows[lane] += kThreadRows * arguments_.row_stride;
      }
    });
    CommitCopies();
  }

  LINSERVE_KERNEL void Compute() {
    const int steps = (rows_ + kDepth - 1) / kDepth;
    ForWarps<kWarps>([&](int warp) {
      Begin(warp);
      for (int step = 0; step < kStages - 1; ++step) Load(step, warp);
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

  LINSERVE_KERNEL static int SlotOf(int warp) { return warp / 4 * kWarpSlots; }
  LINSERVE_KERNEL static int ColumnOf(int warp) { return warp % 4 * kWarpColumns; }

  LINSERVE_KERNEL void Multiply(int step, int warp) {
    LINSERVE_UNROLL
    for (int depth = 0; depth < kDepth; depth += 16) {
      PerLane<FragmentA> a[kWarpSlots / 16];
      // These load the projection's transpose.
      LINSERVE_UNROLL
      for (int i = 0; i < kWarpSlots / 16; ++i) {
        LoadTransposedA<kTileSlots>(ProjectionStage(step), depth, SlotOf(warp) + 16 * i, a[i]);
      }
      LINSERVE_UNROLL
      for (int column = 0; column < kWarpColumns; column += 16) {
        PerLane<FragmentB> b[2];
        LoadB<kTileWidth>(RowStage(step), depth, ColumnOf(warp) + column, b);
        LINSERVE_UNROLL
        for (int i = 0; i < kWarpSlots / 16; ++i) {
          for (int k = 0; k < 2; ++k) {
            MultiplyAdd<T>(a[i], b[k], state_[warp].sums[i][column / 8 + k]);
          }
        }
      }
    }
  }

  LINSERVE_KERNEL void Store() {
    ForWarps<kWarps>([&](int warp) {
      const int column = column_ + ColumnOf(warp);
      LINSERVE_UNROLL
      for (int i = 0; i < kWarpSlots / 16; ++i) {
        const PerLane<Sums>* tiles = state_[warp].sums[i];
        const int slot = slot_ + SlotOf(warp) + 16 * i;
        if (arguments_.sizes.parts > 1) {
          StoreShare(tiles, slot, column);
        } else {
          // The ring has done its work.
          StoreResult(tiles, slot, column, shared_ + warp * 16 * kWarpColumns);
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
    StoreSums<kWarpColumns>(tiles, scratch, to, sizes.width, sizes.slots - slot,
                            sizes.width - column, [](int, int, float sum) { return sum; });
  }

  // Writes the sums of a part's share.
  LINSERVE_KERNEL void StoreShare(const PerLane<Sums>* tiles, int slot, int column) const {
    const ProjectLengthSizes& sizes = arguments_.sizes;
    const int64_t share = static_cast<int64_t>(sequence_) * sizes.parts + part_;
    float* to = arguments_.shares + (share * sizes.slots + slot) * sizes.width + column;
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int tile = 0; tile < kWarpColumns / 8; ++tile) {
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
  int first_;  // row of the sequence
  int rows_;   // of the part that there are
  T* shared_;
  PerWarp<WarpState, kWarps> state_;
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
