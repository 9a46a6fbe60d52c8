#pragma once

#include <cstdint>

#include "cuda/linear_attention.h"
#include "cuda/tile_rows.h"

namespace linserve::cuda {

// Holds what linear attention keeps of the keys and values that it has read, in tiles of 64: a step
// of its kernels. It has the block's E columns of the values; the sums are in registers, each
// warp's of some of the features.
template <typename T, int D, int E>
class KeySums {
 public:
  static constexpr int kWarps = 4;
  static constexpr int kThreads = kWarps * kLanes;
  static constexpr int kFloats = 4 * D + 2 * kThreads;  // of shared memory

  // These are logarithms of each feature, for queries of the tile: the total before it, and the
  // largest key so far. Call them after Advance().
  LINSERVE_KERNEL float before(int feature) const { return before_[feature]; }
  LINSERVE_KERNEL float most(int feature) const { return most_[feature]; }

  LINSERVE_KERNEL KeySums(FeatureMap map, float* floats)
      : map_(map),
        most_(floats),
        total_(floats + D),
        factor_(floats + 2 * D),
        before_(floats + 3 * D),
        part_most_(floats + 4 * D),
        part_total_(floats + 4 * D + kThreads) {}

  // Begins with logarithms [D] and means [D, D] from the block's first column on, or with nothing.
  LINSERVE_KERNEL void Begin(const float* logs, const float* means, int warp) {
    ForFeatures(warp, [&](int, int feature, int part) {
      if (part > 0) return;
      const float log = logs != nullptr ? logs[feature] : kLogOfNothing;
      most_[feature] = log;
      total_[feature] = log == kLogOfNothing ? 0 : 1;
    });
    ForSums(warp, [&](int feature, int column, float* pair) {
      for (int i = 0; i < 2; ++i) {
        pair[i] = means != nullptr ? means[feature * D + column + i] : 0;
      }
    });
  }

  // These are the next three phases of a tile: the largest of its keys is found; keys become
  // features relative to the largest so far (what does not count: 0); and what came before becomes
  // relative to it. counts(row) says which rows of the tile count.
  template <typename Counts>
  LINSERVE_KERNEL void FindMost(const T* keys, int warp, const Counts& counts) const {
    ForFeatures(warp, [&](int thread, int feature, int part) {
      float most = kLogOfNothing;
      for (int row = part * kPartRows; row < (part + 1) * kPartRows; ++row) {
        if (counts(row))
          most = fmaxf(most, LogFeature(map_, static_cast<float>(keys[At(row, feature)])));
      }
      part_most_[thread] = most;
    });
  }

  template <typename Counts>
  LINSERVE_KERNEL void Weigh(T* keys, int warp, const Counts& counts) const {
    ForFeatures(warp, [&](int thread, int feature, int part) {
      const float most = MostNow(feature);
      float total = 0;
      for (int row = part * kPartRows; row < (part + 1) * kPartRows; ++row) {
        T& key = keys[At(row, feature)];
        key = T(counts(row) ? Exp(LogFeature(map_, static_cast<float>(key)) - most) : 0.0F);
        total += static_cast<float>(key);
      }
      part_total_[thread] = total;
    });
  }

  LINSERVE_KERNEL void Advance(int warp) {
    ForFeatures(warp, [&](int, int feature, int part) {
      if (part > 0) return;
      const float most = MostNow(feature);
      before_[feature] = LogTotal(feature);
      factor_[feature] = Exp(most_[feature] - most);
      total_[feature] *= factor_[feature];
      for (int i = 0; i < kParts; ++i) total_[feature] += part_total_[i * D + feature];
      most_[feature] = most;
    });
  }

  // Adds the tile's values by their features.
  LINSERVE_KERNEL void Add(const T* features, const T* values, int warp) {
    ForSums(warp, [&](int feature, int, float* pair) {
      pair[0] *= factor_[feature];
      pair[1] *= factor_[feature];
    });
    LINSERVE_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      if (!Has(warp, tile)) continue;
      const int feature = FeatureOf(warp, tile);
      for (int row = 0; row < kTileRows; row += 16) {
        PerLane<FragmentA> a;
        LoadTransposedA<D>(features, row, feature, a);
        LINSERVE_UNROLL
        for (int column = 0; column < E; column += 16) {
          PerLane<FragmentB> b[2];
          LoadB<E>(values, row, column, b);
          for (int i = 0; i < 2; ++i) {
            MultiplyAdd<T>(a, b[i], sums_[warp].tiles[tile][column / 8 + i]);
          }
        }
      }
    }
  }

  // Returns the logarithm of a feature's total now. Call it after Begin() or Advance() in an
  // earlier phase.
  LINSERVE_KERNEL float LogTotal(int feature) const {
    return total_[feature] > 0 ? most_[feature] + Log(total_[feature]) : kLogOfNothing;
  }

  // Writes the means as a tile [D, E] of shared memory. Call it after Begin() or Advance(), too.
  LINSERVE_KERNEL void StoreTile(T* tile, int warp) {
    ForSums(warp, [&](int feature, int column, const float* pair) {
      const float share = Share(feature);
      StorePair(tile + Tile<E>::Offset(feature, column / 8) + column % 8, pair[0] * share,
                pair[1] * share);
    });
  }

  // Writes what Begin() reads.
  LINSERVE_KERNEL void Store(float* logs, float* means, int warp) {
    ForFeatures(warp, [&](int, int feature, int part) {
      if (part == 0) logs[feature] = LogTotal(feature);
    });
    ForSums(warp, [&](int feature, int column, const float* pair) {
      const float share = Share(feature);
      StoreVector(means + feature * D + column, Vector<float, 2>{pair[0] * share, pair[1] * share});
    });
  }

 private:
  static_assert(D == 32 || D == 64 || D == 128);
  static constexpr int kParts = kThreads / D;  // threads that share a feature
  static constexpr int kPartRows = kTileRows / kParts;
  static constexpr int kTiles = D > 64 ? D / 64 : 1;  // of 16 features, a warp
  struct WarpSums {
    PerLane<Sums> tiles[kTiles][E / 8];
  };

  LINSERVE_KERNEL static int At(int row, int feature) {
    return Tile<D>::Offset(row, feature / 8) + feature % 8;
  }
  LINSERVE_KERNEL static int FeatureOf(int warp, int tile) { return 16 * (warp * kTiles + tile); }

  // Some warps have no tile where heads have 32 features.
  LINSERVE_KERNEL static bool Has(int warp, int tile) {
    return 16 * kWarps * kTiles <= D || FeatureOf(warp, tile) < D;
  }

  // Calls function(thread, feature, part) for each feature and part of its rows that the warp's
  // threads have.
  template <typename Function>
  LINSERVE_KERNEL static void ForFeatures(int warp, const Function& function) {
    ForLanes([&](int lane) {
      const int thread = warp * kLanes + lane;
      function(thread, thread % D, thread / D);
    });
  }

  // Calls function(feature, column, two neighbouring sums) for all sums of a warp.
  template <typename Function>
  LINSERVE_KERNEL void ForSums(int warp, const Function& function) {
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        if (!Has(warp, tile)) continue;
        for (int i = 0; i < E / 8; ++i) {
          float* sums = sums_[warp].tiles[tile][i][lane].values;
          for (int pair = 0; pair < 4; pair += 2) {
            function(FeatureOf(warp, tile) + SumRow(lane, pair), 8 * i + SumColumn(lane, pair),
                     sums + pair);
          }
        }
      }
    });
  }

  LINSERVE_KERNEL float MostNow(int feature) const {
    float most = most_[feature];
    for (int i = 0; i < kParts; ++i) most = fmaxf(most, part_most_[i * D + feature]);
    return most;
  }
  LINSERVE_KERNEL float Share(int feature) const {
    return total_[feature] > 0 ? 1 / total_[feature] : 0;
  }

  FeatureMap map_;
  float* most_;    // the largest logarithm so far
  float* total_;   // of the features relative to it
  float* factor_;  // by which sums become relative to it
  float* before_;  // the logarithm of the total before the tile
  float* part_most_;
  float* part_total_;
  PerWarp<WarpSums, kWarps> sums_;
};

}  // namespace linserve::cuda
