#pragma once

#include <cstdint>

#include "cuda/kernels/linear_attention.h"
#include "cuda/kernels/tile_rows.h"

namespace linserve::cuda {

// Holds what linear attention keeps of the keys and values that it has read, in tiles of 64: a step
// of its kernels. It has the block's E columns of the values. Each warp has some of the features,
// whose sums are in its registers: so it makes them of the keys and adds them up by itself.
template <typename T, int D, int E, FeatureMap kMap>
class KeySums {
 public:
  static constexpr int kWarps = 4;
  static constexpr int kFloats = 4 * D;  // of shared memory

  LINSERVE_KERNEL explicit KeySums(float* floats) : floats_(floats) {}

  // Begins with logarithms [D] and means [D, D] from the block's first column on, or with nothing.
  LINSERVE_KERNEL void Begin(const float* logs, const float* means, int warp) {
    ForRows(warp, [&](int tile, int half, int lane, int feature) {
      const float log = logs != nullptr ? logs[feature] : kLogOfNothing;
      float total = log == kLogOfNothing ? 0 : 1;
      if constexpr (kMap == FeatureMap::kElu) total = Exp2(log);
      state_[warp].most[tile][half][lane] = log;
      if (lane % 4 == 0) Most()[feature] = log;
      ForPairs(warp, tile, half, lane, [&](int column, float* pair) {
        for (int i = 0; i < 2; ++i) {
          pair[i] = means != nullptr ? means[feature * D + column + i] * total : 0;
        }
      });
      float* totals = state_[warp].sums[tile][kTotals][lane].values + 2 * half;
      totals[0] = totals[1] = total;
    });
    SyncLanes();
  }

  // Adds a tile of keys, of which counts(row) says which ones count, and their values. The warp's
  // features take the place of its keys.
  template <typename Counts>
  LINSERVE_KERNEL void Add(T* keys, const T* values, int warp, const Counts& counts) {
    if (!Has(warp)) return;
    MakeFeatures(keys, warp, counts);
    if constexpr (kMap == FeatureMap::kExp) Rescale(warp);
    ForRows(warp, [&](int tile, int half, int lane, int) {
      state_[warp].before[tile][half][lane] = Total(warp, tile, half, lane);
    });
    const PerLane<FragmentB> ones = Ones<T>();
    LINSERVE_UNROLL
    for (int row = 0; row < kTileRows; row += 16) {
      PerLane<FragmentA> a[kTiles];
      LINSERVE_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        LoadTransposedA<D>(keys, row, FeatureOf(warp, tile), a[tile]);
        MultiplyAdd<T>(a[tile], ones, state_[warp].sums[tile][kTotals]);
      }
      LINSERVE_UNROLL
      for (int column = 0; column < E; column += 16) {
        PerLane<FragmentB> b[2];
        LoadB<E>(values, row, column, b);
        LINSERVE_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          for (int i = 0; i < 2; ++i) {
            MultiplyAdd<T>(a[tile], b[i], state_[warp].sums[tile][column / 8 + i]);
          }
        }
      }
    }
  }

  // Writes what queries need to know of the features (see FeatureScales), after Add().
  LINSERVE_KERNEL void StoreScales(int warp) {
    ForRows(warp, [&](int tile, int half, int lane, int feature) {
      const float total = Total(warp, tile, half, lane);
      const float own = total > 0 ? Reciprocal(total) : 0;
      if (lane % 4 > 0) return;
      floats_[feature] = Scale(warp, tile, half, lane);
      floats_[D + feature] = own;
      floats_[2 * D + feature] = state_[warp].before[tile][half][lane] * own;
    });
  }
  LINSERVE_KERNEL FeatureScales Scales() const { return {floats_, floats_ + D, floats_ + 2 * D}; }

  // Writes the means as a tile [D, E] of shared memory.
  LINSERVE_KERNEL void StoreTile(T* to, int warp) {
    ForRows(warp, [&](int tile, int half, int lane, int feature) {
      const float share = Share(warp, tile, half, lane);
      // Rows that are 8 apart have the same order of vectors.
      T* row = to + (feature - SumRow(lane, 0)) * E + SumColumn(lane, 0);
      ForPairs(warp, tile, half, lane, [&](int column, const float* pair) {
        StorePair(row + Tile<E>::Offset(SumRow(lane, 0), column / 8), pair[0] * share,
                  pair[1] * share);
      });
    });
  }

  // Writes what Begin() reads.
  LINSERVE_KERNEL void Store(float* logs, float* means, int warp) {
    ForRows(warp, [&](int tile, int half, int lane, int feature) {
      const float total = Total(warp, tile, half, lane);
      float log = kLogOfNothing;
      // What is not a number goes on to the rows.
      if (!(total <= 0))
        log = kMap == FeatureMap::kElu ? Log2(total) : Scale(warp, tile, half, lane);
      if (lane % 4 == 0) logs[feature] = log;
      const float share = Share(warp, tile, half, lane);
      ForPairs(warp, tile, half, lane, [&](int column, const float* pair) {
        StoreVector(means + feature * D + column,
                    Vector<float, 2>{pair[0] * share, pair[1] * share});
      });
    });
  }

 private:
  static_assert(D == 32 || D == 64 || D == 128);
  static constexpr int kTiles = D > 64 ? D / 64 : 1;  // of 16 features, a warp
  static constexpr int kTotals = E / 8;               // the sums of what is 1 for all keys

  struct WarpState {
    PerLane<Sums> sums[kTiles][E / 8 + 1];
    // A lane has two rows of a tile of sums. These are of their features: the logarithm of the
    // largest (kExp), to which sums are relative, and the total before the last tile of keys.
    PerLane<float> most[kTiles][2];
    PerLane<float> before[kTiles][2];
  };

  // A lane reads whole vectors of one column of them. The rows of the 8 lanes that read at once are
  // so far apart that they lie in different banks.
  static constexpr int kVectors = 2 * kTiles;  // of a warp's features
  static constexpr int kRowsAtOnce = kLanes / kVectors;
  static constexpr int kReads = kTileRows / kRowsAtOnce;
  LINSERVE_KERNEL static int VectorOf(int warp, int lane) {
    return kVectors * warp + lane % kVectors;
  }
  LINSERVE_KERNEL static int RowOf(int lane) {
    constexpr int kApart = 8 / kVectors;
    const int row = lane / kVectors;
    return row % kApart * kVectors + row / kApart % kVectors + row / 8 * 8;
  }

  // Makes features of the warp's share of the keys: elu + 1, or exp relative to the largest so far.
  // What does not count becomes 0.
  template <typename Counts>
  LINSERVE_KERNEL void MakeFeatures(T* keys, int warp, const Counts& counts) const {
    using Pairs = Vector<uint32_t, 4>;
    const auto place = [&](int lane, int read) {
      return keys + Tile<D>::Offset(RowOf(lane), VectorOf(warp, lane)) + read * kRowsAtOnce * D;
    };
    PerLane<Pairs> pairs[kReads];
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int read = 0; read < kReads; ++read) {
        pairs[read][lane] = LoadVector<4>(reinterpret_cast<const uint32_t*>(place(lane, read)));
        if (counts(RowOf(lane) + read * kRowsAtOnce)) continue;
        for (uint32_t& pair : pairs[read][lane].values) pair = kLeastPair<T>;
      }
    });
    PerLane<Vector<float, 8>> most;
    if constexpr (kMap == FeatureMap::kExp) FindMost(pairs, warp, most);
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int read = 0; read < kReads; ++read) {
        Pairs features;
        LINSERVE_UNROLL
        for (int i = 0; i < 4; ++i) {
          float pair[2];
          Unpack<T>(pairs[read][lane].values[i], pair);
          for (int j = 0; j < 2; ++j) {
            if constexpr (kMap == FeatureMap::kElu) {
              pair[j] = EluPlusOne(pair[j]);
            } else {
              pair[j] = Exp2(pair[j] * kLog2OfE - most[lane].values[2 * i + j]);
            }
          }
          features.values[i] = Pack<T>(pair[0], pair[1]);
        }
        PutVector(reinterpret_cast<uint32_t*>(place(lane, read)), features);
      }
    });
    SyncLanes();
  }

  // Finds the largest logarithms so far of each lane's features, and keeps them.
  LINSERVE_KERNEL void FindMost(const PerLane<Vector<uint32_t, 4>>* pairs, int warp,
                                PerLane<Vector<float, 8>>& most) const {
    const auto larger = [](uint32_t a, uint32_t b) { return MaxOfPairs<T>(a, b); };
    PerLane<uint32_t> largest[4];
    for (int i = 0; i < 4; ++i) {
      ForLanes([&](int lane) {
        largest[i][lane] = pairs[0][lane].values[i];
        LINSERVE_UNROLL
        for (int read = 1; read < kReads; ++read) {
          largest[i][lane] = larger(largest[i][lane], pairs[read][lane].values[i]);
        }
      });
      OverLanes<kVectors>(largest[i], larger);
    }
    ForLanes([&](int lane) {
      most[lane] = LoadVector<8>(Most() + 8 * VectorOf(warp, lane));
      for (int i = 0; i < 4; ++i) {
        float pair[2];
        Unpack<T>(largest[i][lane], pair);
        for (int j = 0; j < 2; ++j) {
          float& now = most[lane].values[2 * i + j];
          now = fmaxf(now, pair[j] * kLog2OfE);
        }
      }
    });
    SyncLanes();
    ForLanes([&](int lane) {
      if (lane < kVectors) PutVector(Most() + 8 * VectorOf(warp, lane), most[lane]);
    });
  }

  // What came before becomes relative to the largest so far.
  LINSERVE_KERNEL void Rescale(int warp) {
    ForRows(warp, [&](int tile, int half, int lane, int feature) {
      float& most = state_[warp].most[tile][half][lane];
      const float now = Most()[feature];
      const float factor = Exp2(most - now);
      most = now;
      LINSERVE_UNROLL
      for (auto& sums : state_[warp].sums[tile]) {
        for (int i = 0; i < 2; ++i) sums[lane].values[2 * half + i] *= factor;
      }
    });
  }

  LINSERVE_KERNEL static int FeatureOf(int warp, int tile) { return 16 * (warp * kTiles + tile); }

  // Some warps have no features where heads have 32.
  LINSERVE_KERNEL static bool Has(int warp) { return 16 * kWarps <= D || FeatureOf(warp, 0) < D; }

  // Calls function(tile, half, lane, feature) for the lanes' rows of the warp's sums.
  template <typename Function>
  LINSERVE_KERNEL static void ForRows(int warp, const Function& function) {
    if (!Has(warp)) return;
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        LINSERVE_UNROLL
        for (int half = 0; half < 2; ++half) {
          function(tile, half, lane, FeatureOf(warp, tile) + SumRow(lane, 2 * half));
        }
      }
    });
  }

  // Calls function(column, two neighbouring sums) for one of these rows.
  template <typename Function>
  LINSERVE_KERNEL void ForPairs(int warp, int tile, int half, int lane, const Function& function) {
    LINSERVE_UNROLL
    for (int i = 0; i < E / 8; ++i) {
      function(8 * i + SumColumn(lane, 0), state_[warp].sums[tile][i][lane].values + 2 * half);
    }
  }

  LINSERVE_KERNEL float Total(int warp, int tile, int half, int lane) {
    return state_[warp].sums[tile][kTotals][lane].values[2 * half];
  }
  LINSERVE_KERNEL float Share(int warp, int tile, int half, int lane) {
    const float total = Total(warp, tile, half, lane);
    return total > 0 ? Reciprocal(total) : 0;
  }
  // Returns the total, of kExp its logarithm.
  LINSERVE_KERNEL float Scale(int warp, int tile, int half, int lane) {
    const float total = Total(warp, tile, half, lane);
    if (kMap == FeatureMap::kElu) return total;
    return state_[warp].most[tile][half][lane] + (total > 0 ? Log2(total) : 0);
  }

  LINSERVE_KERNEL float* Most() const { return floats_ + 3 * D; }

  float* floats_;
  PerWarp<WarpState, kWarps> state_;
};

}  // namespace linserve::cuda
