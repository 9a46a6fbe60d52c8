#include "attention/products/block_math.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "attention/products/lanes.h"
#include "attention/products/vectorized.h"

namespace linserve {
namespace {

constexpr int64_t kSquare = 4;
using Vector4 [[gnu::vector_size(kSquare * sizeof(float))]] = float;

LINSERVE_INLINE Vector4 Load(const float* from) {
  Vector4 vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

LINSERVE_INLINE void TransposeSquare(const RowBlock& in, const RowBlock& out) {
  const Vector4 a = Load(in.data);
  const Vector4 b = Load(in.Rows(1).data);
  const Vector4 c = Load(in.Rows(2).data);
  const Vector4 d = Load(in.Rows(3).data);
  const Vector4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Vector4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Vector4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Vector4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const std::array<Vector4, kSquare> columns = {
      __builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
      __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
      __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int64_t j = 0; j < kSquare; ++j) {
    std::memcpy(out.Rows(j).data, &columns[static_cast<size_t>(j)], sizeof(Vector4));
  }
}

// Calls `function` for the elements of each row, biased or not.
template <typename Function>
LINSERVE_INLINE void ForBiased(const RowBlock& rows, int64_t count, int64_t width,
                               const float* bias, const Function& function) {
  for (int64_t i = 0; i < count; ++i) {
    float* row = rows.Rows(i).data;
    if (bias != nullptr) {
      ForColumns(
          width, [&](int64_t j)
                     __attribute__((always_inline)) { row[j] = function(row[j] + bias[j]); });
    } else {
      ForColumns(
          width, [&](int64_t j) __attribute__((always_inline)) { row[j] = function(row[j]); });
    }
  }
}

template <typename Vector>
LINSERVE_INLINE void NormalizeRow(const float* row, int64_t width, const float* weight,
                                  const float* bias, float eps, float* out) {
  const float mean = SumOf<Vector>(row, width, Itself()) / static_cast<float>(width);
  const float squares = SumOf<Vector>(row, width, SquareFrom{mean});
  const float scale = 1.0F / std::sqrt(squares / static_cast<float>(width) + eps);
  if (bias == nullptr) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) out[j] = (row[j] - mean) * scale * weight[j];
    return;
  }
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) out[j] = (row[j] - mean) * scale * weight[j] + bias[j];
}

}  // namespace

void AddBias(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width, bias, [](float x) __attribute__((always_inline)) { return x; });
  });
}

void BiasGelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width, bias, [](float x) __attribute__((always_inline)) { return Gelu(x); });
  });
}

void BiasGeluToRound(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width, bias,
        [](float x) __attribute__((always_inline)) { return Gelu<Digits::kToRound>(x); });
  });
}

void BiasTanhGelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width, bias,
        [](float x) __attribute__((always_inline)) { return TanhGelu(x); });
  });
}

void BiasSilu(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width, bias,
        [](float x) __attribute__((always_inline)) { return x * Sigmoid(x); });
  });
}

void BiasTanh(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width, bias, [](float x) __attribute__((always_inline)) { return Tanh(x); });
  });
}

void CapRows(const RowBlock& rows, int64_t count, int64_t width, float scale, float cap) {
  const float share = scale / cap;
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width,
        nullptr, [=](float x) __attribute__((always_inline)) { return cap * Tanh(x * share); });
  });
}

void BiasRelu(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width, bias,
        [](float x) __attribute__((always_inline)) { return x < 0 ? 0.0F : x; });
  });
}

void BiasActivate(Activation activation, const RowBlock& rows, int64_t count, int64_t width,
                  const float* bias, bool to_round) {
  switch (activation) {
    case Activation::kGelu:
      return to_round ? BiasGeluToRound(rows, count, width, bias)
                      : BiasGelu(rows, count, width, bias);
    case Activation::kTanhGelu:
      return BiasTanhGelu(rows, count, width, bias);
    case Activation::kRelu:
      return BiasRelu(rows, count, width, bias);
    case Activation::kSilu:
      return BiasSilu(rows, count, width, bias);
    case Activation::kTanh:
      return BiasTanh(rows, count, width, bias);
    case Activation::kIdentity:
      return AddBias(rows, count, width, bias);
    default:
      break;
  }
  if (bias != nullptr) AddBias(rows, count, width, bias);
  at::Tensor x = at::from_blob(rows.data, {count, width}, {rows.stride, 1});
  Activate(activation, x);
}

void EluPlusOne(const RowBlock& rows, int64_t count, int64_t width, const RowBlock& out) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const float* row = rows.Rows(i).data;
      float* result = out.Rows(i).data;
      ForColumns(
          width, [&](int64_t j) __attribute__((always_inline)) {
            const float below = row[j] < 0 ? row[j] : 0.0F;
            result[j] = Exp(below) + (row[j] - below);
          });
    }
  });
}

void ExpOffsets(const RowBlock& rows, int64_t count, int64_t width, const float* offsets,
                float* mirrored) {
  constexpr float kMost = 87.0F;  // e^88 is more than F32 holds
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
      float* other = mirrored == nullptr ? nullptr : mirrored + i * rows.stride;
      const float offset = offsets[i];
      if (other != nullptr) {
        ForColumns(
            width, [&](int64_t j) __attribute__((always_inline)) {
              const float power = -row[j] - offset;
              other[j] = Exp(power > kMost ? kMost : power);
            });
      }
      ForColumns(
          width, [&](int64_t j) __attribute__((always_inline)) {
            const float power = row[j] - offset;
            row[j] = Exp(power > kMost ? kMost : power);
          });
    }
  });
}

void Gate(const RowBlock& rows, int64_t count, int64_t width, const float* bias) {
  if (bias != nullptr) AddBias(rows.Columns(width), count, width, bias + width);
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = rows.Rows(i).data;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) row[j] *= row[width + j];
    }
  });
}

void NormalizeRows(const RowBlock& rows, int64_t count, int64_t width, const float* weight,
                   const float* bias, float eps, const RowBlock& out) {
  WithVectors([&](auto vector) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      NormalizeRow<decltype(vector)>(rows.Rows(i).data, width, weight, bias, eps, out.Rows(i).data);
    }
  });
}

void SetLengths(const RowBlock& rows, int64_t count, int64_t width, float length, float eps,
                const RowBlock& out) {
  WithVectors([&](auto vector) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const float* row = rows.Rows(i).data;
      const float squares = SumOf<decltype(vector)>(row, width, SquareFrom());
      const float factor = length / std::max(std::sqrt(squares), eps);
      float* own = out.Rows(i).data;
      ForColumns(
          width, [&](int64_t j) __attribute__((always_inline)) { own[j] = row[j] * factor; });
    }
  });
}

void SetMeanSquares(const RowBlock& rows, int64_t count, int64_t width, const float* weight,
                    float eps, const RowBlock& out) {
  WithVectors([&](auto vector) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const float* row = rows.Rows(i).data;
      const float squares = SumOf<decltype(vector)>(row, width, SquareFrom());
      const float scale = 1.0F / std::sqrt(squares / static_cast<float>(width) + eps);
      float* own = out.Rows(i).data;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) own[j] = row[j] * scale * weight[j];
    }
  });
}

void ScaleRows(const RowBlock& rows, int64_t count, int64_t width, const float* factors,
               const RowBlock& out) {
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const float* row = rows.Rows(i).data;
      float* result = out.Rows(i).data;
      const float factor = factors[i];
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) result[j] = row[j] * factor;
    }
  });
}

void ExpRows(const RowBlock& rows, int64_t count, int64_t width) {
  Vectorized([&]() __attribute__((always_inline)) {
    ForBiased(
        rows, count, width, nullptr, [](float x) __attribute__((always_inline)) { return Exp(x); });
  });
}

void Transpose(const RowBlock& rows, int64_t count, int64_t width, const RowBlock& out) {
  const int64_t whole_rows = count / kSquare * kSquare;
  const int64_t whole_columns = width / kSquare * kSquare;
  for (int64_t i = 0; i < whole_rows; i += kSquare) {
    for (int64_t j = 0; j < whole_columns; j += kSquare) {
      TransposeSquare(rows.Rows(i).Columns(j), out.Rows(j).Columns(i));
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < width; ++j) {
      out.Rows(j).data[i] = rows.Rows(i).data[j];
    }
  }
}

void RotateRows(const RowBlock& rows, int64_t count, int64_t heads, int64_t dim_head,
                const RowBlock& table) {
  const int64_t pairs = dim_head / 2;
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const float* sine = table.Rows(i).data;
      const float* cosine = sine + pairs;
      for (int64_t head = 0; head < heads; ++head) {
        float* features = rows.Rows(i).data + head * dim_head;
#pragma omp simd
        for (int64_t j = 0; j < pairs; ++j) {
          const float first = features[2 * j];
          const float second = features[2 * j + 1];
          features[2 * j] = first * cosine[j] - second * sine[j];
          features[2 * j + 1] = second * cosine[j] + first * sine[j];
        }
      }
    }
  });
}

void RotateHalves(const RowBlock& rows, int64_t count, int64_t heads, int64_t dim_head,
                  const RowBlock& table) {
  const int64_t half = dim_head / 2;
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const float* sine = table.Rows(i).data;
      const float* cosine = sine + half;
      for (int64_t head = 0; head < heads; ++head) {
        float* first = rows.Rows(i).data + head * dim_head;
        float* second = first + half;
#pragma omp simd
        for (int64_t j = 0; j < half; ++j) {
          const float before = first[j];
          first[j] = before * cosine[j] - second[j] * sine[j];
          second[j] = second[j] * cosine[j] + before * sine[j];
        }
      }
    }
  });
}

void LowerTriangle(const RowBlock& scores, int64_t count, float* sums, int64_t bucket) {
  WithVectors([&](auto vector) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      float* row = scores.Rows(i).data;
      const int64_t seen = bucket == 1 ? i + 1 : i / bucket * bucket;
      std::fill(row + seen, row + count, 0.0F);
      sums[i] = SumOf<decltype(vector)>(row, count, Itself());
    }
  });
}

void AddRows(const RowBlock& rows, int64_t count, int64_t width, const RowBlock& other) {
  for (int64_t i = 0; i < count; ++i) AddBias(rows.Rows(i), 1, width, other.Rows(i).data);
}

void AddDots(const RowBlock& rows, int64_t count, int64_t width, const float* vector, float* sums) {
  WithVectors([&](auto of) __attribute__((always_inline)) {
    using Vector = decltype(of);
    constexpr int64_t kLanes = Vector::kLanes;
    for (int64_t i = 0; i < count; ++i) {
      const float* row = rows.Rows(i).data;
      typename Vector::Floats dots{};
      typename Vector::Floats x;
      typename Vector::Floats y;
      int64_t j = 0;
      for (; j + kLanes <= width; j += kLanes) {
        LoadLanes(row + j, x);
        LoadLanes(vector + j, y);
        dots += x * y;
      }
      float sum = Sum(dots);
      for (; j < width; ++j) sum += row[j] * vector[j];
      sums[i] += sum;
    }
  });
}

void AddRowSums(const RowBlock& rows, int64_t count, int64_t width, float* sums) {
  constexpr int64_t kColumns = 64;
  Vectorized([&]() __attribute__((always_inline)) {
    for (int64_t column = 0; column < width; column += kColumns) {
      const int64_t some = std::min(kColumns, width - column);
      // Added to large sums one by one, equal rows would all lose the same digits.
      std::array<float, kColumns> own{};
      for (int64_t i = 0; i < count; ++i) {
        const float* row = rows.Rows(i).data + column;
#pragma omp simd
        for (int64_t j = 0; j < some; ++j) own[j] += row[j];
      }
      for (int64_t j = 0; j < some; ++j) sums[column + j] += own[j];
    }
  });
}

}  // namespace linserve
