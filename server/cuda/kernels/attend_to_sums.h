#pragma once

#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "cuda/kernels/linear_attention.h"
#include "cuda/kernels/tile_rows.h"

namespace linserve::cuda {

// Holds a warp's 16 queries and what they make of the keys' sums: a step of linear attention. It
// works on E columns of the values. If it is not causal, there are only keys before the queries,
// and those of kExp are softmaxed, so that their totals are 1.
template <typename T, int D, int E, FeatureMap kMap, bool kCausal>
class AttendToSums {
 public:
  // Takes queries [row, + 16) of a tile. Their features become products with the scales, relative
  // to the largest of them.
  LINSERVE_KERNEL AttendToSums(const T* queries, int row, const FeatureScales& of_keys)
      : row_(row), of_keys_(of_keys) {
    ForLanes([&](int lane) {
      for (auto& tile : result_) tile[lane] = {};
      for (auto& tile : scores_) tile[lane] = {};
      divisor_[lane] = {};
      for (int half = 0; half < 2; ++half) {
        most_[half][lane] = -FLT_MAX;
        reach_[half][lane] = kMap == FeatureMap::kElu ? FLT_MIN : -FLT_MAX;
        total_[half][lane] = 0;
      }
    });
    LINSERVE_UNROLL
    for (int first = 0; first < D; first += 16) {
      PerLane<FragmentA> a;
      LoadA<D>(queries, row, first, a);
      ForLanes([&](int lane) {
        for (int i = 0; i < 4; ++i) {
          float pair[2];
          Unpack<T>(a[lane].registers[i], pair);
          for (int j = 0; j < 2; ++j) products_[first / 16][lane].values[2 * i + j] = pair[j];
        }
      });
    }
    if constexpr (kMap == FeatureMap::kExp) {
      FindTotals();
    }
    MultiplyByScales();
  }

  // Adds the keys before the tile, by their means [D, E].
  LINSERVE_KERNEL void AddBefore(const T* means) {
    const PerLane<FragmentB> ones = Ones<T>();
    LINSERVE_UNROLL
    for (int feature = 0; feature < D; feature += 16) {
      PerLane<FragmentA> a;
      Weigh(feature, of_keys_.before, a);
      MultiplyAdd<T>(a, ones, divisor_);
      LINSERVE_UNROLL
      for (int column = 0; column < E; column += 16) {
        PerLane<FragmentB> b[2];
        LoadB<E>(means, feature, column, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], result_[column / 8 + i]);
      }
    }
  }

  // Adds the tile's own keys, by their features, and their values. end(row of the queries) is the
  // first of the keys that a query does not see any more: at most the one after itself, and none
  // that a query before it sees.
  template <typename End>
  LINSERVE_KERNEL void AddTile(const T* features, const T* values, const End& end) {
    const int keys = row_ + 16;  // none of the queries sees more
    LINSERVE_UNROLL
    for (int feature = 0; feature < D; feature += 16) {
      PerLane<FragmentA> a;
      Weigh(feature, of_keys_.own, a);
      LINSERVE_UNROLL
      for (int key = 0; key < kTileRows; key += 16) {
        if (key >= keys) continue;
        PerLane<FragmentB> b[2];
        LoadTransposedB<D>(features, key, feature, b);
        for (int i = 0; i < 2; ++i) MultiplyAdd<T>(a, b[i], scores_[key / 8 + i]);
      }
    }
    const PerLane<FragmentB> ones = Ones<T>();
    LINSERVE_UNROLL
    for (int key = 0; key < kTileRows; key += 16) {
      if (key >= keys) continue;
      if (key + 16 > end(row_)) HideFrom(key, end);  // some query does not see all of these
      PerLane<FragmentA> a;
      ForLanes([&](int lane) {
        for (int i = 0; i < 4; ++i) {
          const float* pair = scores_[key / 8 + i / 2][lane].values + i % 2 * 2;
          a[lane].registers[i] = Pack<T>(pair[0], pair[1]);
        }
      });
      MultiplyAdd<T>(a, ones, divisor_);
      LINSERVE_UNROLL
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
    PerLane<float> shares[2];
    ForLanes([&](int lane) {
      for (int half = 0; half < 2; ++half) shares[half][lane] = ShareOf(arguments, lane, half);
    });
    StoreSums<E>(result_, queries + row_ * D, result + row_ * arguments.result_stride,
                 arguments.result_stride, rows - row_, E,
                 [&](int lane, int half, float sum) { return Limited(sum * shares[half][lane]); });
  }

 private:
  // Holds a lane's 8 features of 16, in the order of FragmentA.
  struct Features {
    float values[8];
  };

  // Sums that are not divided end where F16 does, as those of LibTorch's operators.
  LINSERVE_KERNEL static float Limited(float x) {
    constexpr float kMost = 65504;
    if constexpr (!std::is_same_v<T, c10::Half>) return x;
    return x > kMost ? kMost : x < -kMost ? -kMost : x;
  }

  // Calls function(lane, half, number of the query) for all features.
  template <typename Function>
  LINSERVE_KERNEL void ForFeatures(const Function& function) {
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (auto& step : products_) {
        LINSERVE_UNROLL
        for (int i = 0; i < 8; ++i) function(lane, i / 2 % 2, step[lane].values[i]);
      }
    });
  }

  // Finds the largest of a query's numbers, and what their softmax is divided by.
  LINSERVE_KERNEL void FindTotals() {
    ForFeatures([&](int lane, int half, float query) {
      most_[half][lane] = fmaxf(most_[half][lane], query);
    });
    for (auto& most : most_) OverRow(most, [](float a, float b) { return fmaxf(a, b); });
    ForLanes([&](int lane) {
      for (auto& most : most_) most[lane] *= kLog2OfE;
    });
    ForFeatures([&](int lane, int half, float query) {
      total_[half][lane] += Exp2(query * kLog2OfE - most_[half][lane]);
    });
    for (auto& total : total_) OverRow(total, [](float a, float b) { return a + b; });
  }

  LINSERVE_KERNEL void MultiplyByScales() {
    LINSERVE_UNROLL
    for (int step = 0; step < D / 16; ++step) {
      ForLanes([&](int lane) {
        LINSERVE_UNROLL
        for (int i = 0; i < 8; i += 2) {
          Vector<float, 2> scales{};
          if constexpr (kCausal || kMap == FeatureMap::kElu) {
            scales = OfKeys(of_keys_.scales, step, lane, i);
          }
          float& reach = reach_[i / 2 % 2][lane];
          for (int j = 0; j < 2; ++j) {
            float& product = products_[step][lane].values[i + j];
            product = kMap == FeatureMap::kElu ? EluPlusOne(product) * scales.values[j]
                                               : product * kLog2OfE + scales.values[j];
            reach = fmaxf(reach, product);
          }
        }
      });
    }
    for (auto& reach : reach_) OverRow(reach, [](float a, float b) { return fmaxf(a, b); });
    PerLane<float> factors[2];
    ForLanes([&](int lane) {
      for (int half = 0; half < 2; ++half) factors[half][lane] = Reciprocal(reach_[half][lane]);
    });
    ForFeatures([&](int lane, int half, float& product) {
      product = kMap == FeatureMap::kElu ? product * factors[half][lane]
                                         : Exp2(product - reach_[half][lane]);
    });
  }

  // Returns two of the keys' numbers, for two neighbouring products of a lane.
  LINSERVE_KERNEL static Vector<float, 2> OfKeys(const float* numbers, int step, int lane, int i) {
    return LoadVector<2>(numbers + 16 * step + lane % 4 * 2 + i / 4 * 8);
  }

  // Makes weights of products [first, + 16) of the queries, by the keys' shares of the scales.
  LINSERVE_KERNEL void Weigh(int first, const float* shares, PerLane<FragmentA>& a) const {
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float* pair = products_[first / 16][lane].values + 2 * i;
        Vector<float, 2> of_keys{1, 1};
        if constexpr (kCausal) of_keys = OfKeys(shares, first / 16, lane, 2 * i);
        a[lane].registers[i] = Pack<T>(pair[0] * of_keys.values[0], pair[1] * of_keys.values[1]);
      }
    });
  }

  // Makes 0 of the scores of keys [key, + 16) that their queries do not see.
  template <typename End>
  LINSERVE_KERNEL void HideFrom(int key, const End& end) {
    ForLanes([&](int lane) {
      LINSERVE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int seen = end(row_ + SumRow(lane, 2 * half)) - key - SumColumn(lane, 0);
        LINSERVE_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (i / 2 * 8 + i % 2 < seen) continue;
          scores_[key / 8 + i / 2][lane].values[2 * half + i % 2] = 0;
        }
      }
    });
  }

  // Returns the factor that the result is multiplied by: true weights are so many times those here,
  // of kExp this is the logarithm.
  LINSERVE_KERNEL float ShareOf(const LinearAttentionArguments<T>& arguments, int lane,
                                int half) const {
    float times = reach_[half][lane];
    if constexpr (kMap == FeatureMap::kExp) {
      constexpr float kHalfLog2OfD = D == 32 ? 2.5F : D == 64 ? 3 : 3.5F;
      times = Exp2(times - most_[half][lane] - Log2(total_[half][lane]) - kHalfLog2OfD);
    }
    if (!arguments.divided) return times;
    const float floor = fmaxf(arguments.floor * Reciprocal(times), FLT_MIN);
    // What weights are after rounding is what they are divided by.
    return Reciprocal(fmaxf(divisor_[lane].values[2 * half], floor));
  }

  int row_;
  FeatureScales of_keys_;
  PerLane<Features> products_[D / 16];
  PerLane<Sums> result_[E / 8];
  PerLane<Sums> scores_[kTileRows / 8];
  PerLane<Sums> divisor_;
  // These are kept of a lane's two rows: logarithms of the largest of the query's features and of
  // its products (kElu: that itself), and the total of the query's features relative to the
  // largest.
  PerLane<float> most_[2];
  PerLane<float> reach_[2];
  PerLane<float> total_[2];
};

}  // namespace linserve::cuda
