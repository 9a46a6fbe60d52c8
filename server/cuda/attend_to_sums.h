#pragma once

#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "cuda/linear_attention.h"
#include "cuda/tile_rows.h"

namespace linserve::cuda {

// Holds a warp's 16 queries and what they make of the keys' sums: a step of linear attention. It
// works on E columns of the values.
template <typename T, int D, int E>
class AttendToSums {
 public:
  // Takes queries [row, + 16) of a tile. Their features meet the logarithms before(d) and most(d),
  // of the keys before the tile and in it: they become weights relative to the largest of the
  // products.
  template <typename Before, typename Most>
  LINSERVE_KERNEL void Begin(FeatureMap map, const T* queries, int row, const Before& before,
                             const Most& most) {
    map_ = map;
    queries_ = queries;
    row_ = row;
    ForLanes([&](int lane) {
      for (auto& tile : result_) tile[lane] = {};
      for (auto& tile : scores_) tile[lane] = {};
      for (int half = 0; half < 2; ++half) {
        largest_[half][lane] = -FLT_MAX;
        reach_[half][lane] = -FLT_MAX;
        total_[half][lane] = 0;
        divisor_[half][lane] = 0;
      }
    });
    ForQueries([&](int lane, int half, int feature, float query) {
      float& largest = largest_[half][lane];
      float& reach = reach_[half][lane];
      largest = fmaxf(largest, query);
      reach = fmaxf(reach, query + fmaxf(before(feature), most(feature)));
    });
    for (int half = 0; half < 2; ++half) {
      OverRow(largest_[half], [](float a, float b) { return fmaxf(a, b); });
      OverRow(reach_[half], [](float a, float b) { return fmaxf(a, b); });
    }
    if (map != FeatureMap::kExp) return;
    ForQueries([&](int lane, int half, int, float query) {
      total_[half][lane] += Exp(query - largest_[half][lane]);
    });
    for (auto& total : total_) OverRow(total, [](float a, float b) { return a + b; });
  }

  // Adds the keys before the tile, by their means [D, E].
  template <typename Before>
  LINSERVE_KERNEL void AddBefore(const T* means, const Before& before) {
    for (int feature = 0; feature < D; feature += 16) {
      PerLane<FragmentA> a;
      Weigh(feature, before, a);
      AddToDivisor(a);
      for (int column = 0; column < E; column += 16) {
        PerLane<FragmentB> b[2];
        LoadB<E>(means, feature, column, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], result_[column / 8 + i]);
      }
    }
  }

  // Adds the tile's own keys, by their features, and their values. end(row of the queries) is the
  // first of the keys that a query does not see any more: at most the one after itself.
  template <typename Most, typename End>
  LINSERVE_KERNEL void AddTile(const T* features, const T* values, const Most& most,
                               const End& end) {
    const int keys = row_ + 16;  // none of the queries sees more
    for (int feature = 0; feature < D; feature += 16) {
      PerLane<FragmentA> a;
      Weigh(feature, most, a);
      LINSERVE_UNROLL
      for (int key = 0; key < kTileRows; key += 16) {
        if (key >= keys) continue;
        PerLane<FragmentB> b[2];
        LoadTransposedB<D>(features, key, feature, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], scores_[key / 8 + i]);
      }
    }
    PerLane<int> ends[2];
    ForLanes([&](int lane) {
      for (int half = 0; half < 2; ++half) ends[half][lane] = end(row_ + SumRow(lane, 2 * half));
    });
    LINSERVE_UNROLL
    for (int key = 0; key < kTileRows; key += 16) {
      if (key >= keys) continue;
      PerLane<FragmentA> a;
      ForLanes([&](int lane) {
        for (int i = 0; i < 4; ++i) {
          const int tile = key / 8 + i / 2;
          float* pair = scores_[tile][lane].values + i % 2 * 2;
          for (int j = 0; j < 2; ++j) {
            if (8 * tile + SumColumn(lane, j) >= ends[i % 2][lane]) pair[j] = 0;
          }
          a[lane].registers[i] = Pack<T>(pair[0], pair[1]);
        }
      });
      AddToDivisor(a);
      for (int column = 0; column < E; column += 16) {
        PerLane<FragmentB> b[2];
        LoadB<E>(values, key, column, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], result_[column / 8 + i]);
      }
    }
  }

  // Writes the result from the tile's first query on, of which there are `rows`, over the queries.
  LINSERVE_KERNEL void Store(const LinearAttentionArguments<T>& arguments, T* queries, T* result,
                             int rows) {
    for (auto& divisor : divisor_) OverRow(divisor, [](float a, float b) { return a + b; });
    PerLane<float> shares[2];
    ForLanes([&](int lane) {
      for (int half = 0; half < 2; ++half) shares[half][lane] = ShareOf(arguments, lane, half);
    });
    StoreSums<E>(result_, queries + row_ * D, result + row_ * arguments.result_stride,
                 arguments.result_stride, rows - row_, E,
                 [&](int lane, int half, float sum) { return Limited(sum * shares[half][lane]); });
  }

 private:
  // Sums that are not divided end where F16 does, as those of LibTorch's operators.
  LINSERVE_KERNEL static float Limited(float x) {
    constexpr float kMost = 65504;
    if constexpr (!std::is_same_v<T, c10::Half>) return x;
    return x > kMost ? kMost : x < -kMost ? -kMost : x;
  }

  // Unpacks the two numbers of a register.
  LINSERVE_KERNEL static void Unpack(uint32_t bits, float (&pair)[2]) {
    T numbers[2];
    memcpy(numbers, &bits, sizeof(bits));
    for (int i = 0; i < 2; ++i) pair[i] = static_cast<float>(numbers[i]);
  }

  // Calls function(lane, half, feature, logarithm of the query's feature) for all of them.
  template <typename Function>
  LINSERVE_KERNEL void ForQueries(const Function& function) const {
    for (int first = 0; first < D; first += 16) {
      PerLane<FragmentA> a;
      LoadA<D>(queries_, row_, first, a);
      ForLanes([&](int lane) {
        for (int i = 0; i < 4; ++i) {
          float pair[2];
          Unpack(a[lane].registers[i], pair);
          for (int j = 0; j < 2; ++j) {
            const int feature = first + lane % 4 * 2 + i / 2 * 8 + j;
            function(lane, i % 2, feature, LogFeature(map_, pair[j]));
          }
        }
      });
    }
  }

  // Makes of features [first, + 16) of the queries the weights of what has these logarithms.
  template <typename Logs>
  LINSERVE_KERNEL void Weigh(int first, const Logs& logs, PerLane<FragmentA>& a) const {
    LoadA<D>(queries_, row_, first, a);
    ForLanes([&](int lane) {
      for (int i = 0; i < 4; ++i) {
        float pair[2];
        Unpack(a[lane].registers[i], pair);
        for (int j = 0; j < 2; ++j) {
          const int feature = first + lane % 4 * 2 + i / 2 * 8 + j;
          pair[j] = Exp(LogFeature(map_, pair[j]) + logs(feature) - reach_[i % 2][lane]);
        }
        a[lane].registers[i] = Pack<T>(pair[0], pair[1]);
      }
    });
  }

  // What weights are after rounding is what they are divided by.
  LINSERVE_KERNEL void AddToDivisor(const PerLane<FragmentA>& weights) {
    ForLanes([&](int lane) {
      for (int i = 0; i < 4; ++i) {
        float pair[2];
        Unpack(weights[lane].registers[i], pair);
        divisor_[i % 2][lane] += pair[0] + pair[1];
      }
    });
  }

  // Returns the factor that the result is multiplied by: true weights are exp(log) times those
  // here.
  LINSERVE_KERNEL float ShareOf(const LinearAttentionArguments<T>& arguments, int lane,
                                int half) const {
    float log = reach_[half][lane];
    if (map_ == FeatureMap::kExp) {
      log -= largest_[half][lane] + Log(total_[half][lane]) + 0.5F * Log(static_cast<float>(D));
    }
    if (!arguments.divided) return Exp(log);
    const float floor = fmaxf(Exp(Log(arguments.floor) - log), FLT_MIN);
    return 1 / fmaxf(divisor_[half][lane], floor);
  }

  FeatureMap map_;
  const T* queries_;
  int row_;
  PerLane<Sums> result_[E / 8];
  PerLane<Sums> scores_[kTileRows / 8];
  // These are kept of a lane's two rows.
  PerLane<float> largest_[2];  // logarithm of a feature of the query
  PerLane<float> reach_[2];    // logarithm of a product
  PerLane<float> total_[2];    // of the query's features relative to the largest
  PerLane<float> divisor_[2];
};

}  // namespace linserve::cuda
