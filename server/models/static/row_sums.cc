#include "models/static/row_sums.h"

#include <algorithm>
#include <bit>

#include "attention/products/vectorized.h"
#include "attention/rows/aten.h"

namespace linserve::static_models {
namespace {

// So many rows are added up by themselves: added to large sums one by one, equal rows would all
// lose the same digits.
constexpr int64_t kRowsAtOnce = 64;

LINSERVE_INLINE float FloatOf(float number) { return number; }
// Is of BF16, the upper half of a float.
LINSERVE_INLINE float FloatOf(uint16_t number) {
  return std::bit_cast<float>(static_cast<uint32_t>(number) << 16);
}

// Names a row of a table, and what it is multiplied by.
struct WeightedRow {
  int64_t row;
  float weight;
};

// sums [width] += the sum of rows
template <typename Number>
void AddUpRows(const Number* table, const std::vector<WeightedRow>& rows, int64_t width,
               float* sums) {
  std::vector<float> own(static_cast<size_t>(width));
  Vectorized([&]() __attribute__((always_inline)) {
    for (const WeightedRow& row : rows) {
      const Number* numbers = table + row.row * width;
      const float weight = row.weight;
      ForColumns(
          width, [&](int64_t j)
                     __attribute__((always_inline)) { own[j] += weight * FloatOf(numbers[j]); });
    }
    ForColumns(
        width, [&](int64_t j) __attribute__((always_inline)) { sums[j] += own[j]; });
  });
}

}  // namespace

TokenRows::TokenRows(const at::Tensor& table, const at::Tensor& mapping, const at::Tensor& weights)
    : table_(table), mapping_(mapping), weights_(weights) {}

void TokenRows::Mean(const int64_t* tokens, const bool* mask, int64_t count, float* mean) const {
  const int64_t width = table_.size(1);
  std::fill_n(mean, width, 0.0F);
  std::vector<WeightedRow> rows;
  const auto add_up = [&] {
    if (table_.scalar_type() == at::kFloat) {
      AddUpRows(table_.const_data_ptr<float>(), rows, width, mean);
    } else {
      const auto* bits = reinterpret_cast<const uint16_t*>(table_.const_data_ptr<c10::BFloat16>());
      AddUpRows(bits, rows, width, mean);
    }
    rows.clear();
  };
  int64_t there = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (mask != nullptr && !mask[i]) continue;
    const int64_t token = tokens[i];
    rows.push_back({mapping_.defined() ? mapping_.const_data_ptr<int64_t>()[token] : token,
                    weights_.defined() ? weights_.const_data_ptr<float>()[token] : 1.0F});
    ++there;
    if (std::ssize(rows) == kRowsAtOnce) add_up();
  }
  add_up();
  const auto number = static_cast<float>(std::max<int64_t>(there, 1));
  for (int64_t j = 0; j < width; ++j) mean[j] /= number;
}

}  // namespace linserve::static_models
