#include "models/forward/batch_parts.h"

#include <algorithm>
#include <numeric>

#include "attention/rows/aten.h"
#include "attention/rows/layout_part.h"

namespace linserve {
namespace {

// Fewer rows are not worth a part of their own; more are not faster, and let threads end apart.
constexpr int64_t kFewestRowsOfPart = 256;
constexpr int64_t kMostRowsOfPart = 512;
// All threads together reach inside the products this share of what they reach side by side.
constexpr double kWithinProducts = 0.7;

}  // namespace

std::vector<BatchPart> ShareOut(const std::vector<int64_t>& costs, int64_t threads) {
  const auto sequences = static_cast<int64_t>(costs.size());
  std::vector<BatchPart> whole = {{0, sequences}};
  if (threads == 1 || sequences == 1) return whole;
  const int64_t total = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  const int64_t aim = std::clamp(total / threads, kFewestRowsOfPart, kMostRowsOfPart);
  std::vector<BatchPart> parts;
  int64_t rows = 0;
  int64_t largest = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t cost = costs[static_cast<size_t>(i)];
    // A part ends where it is nearest to the aim.
    if (parts.empty() || rows + cost / 2 > aim) {
      parts.push_back({i, 0});
      rows = 0;
    }
    ++parts.back().count;
    rows += cost;
    largest = std::max(largest, rows);
  }
  const auto busy = std::min(threads, static_cast<int64_t>(parts.size()));
  const double side_by_side =
      static_cast<double>(total) / static_cast<double>(std::max(largest, total / busy));
  return side_by_side < kWithinProducts * static_cast<double>(threads) ? whole : parts;
}

std::vector<int64_t> Costs(const TensorBatch& batch) {
  std::vector<int64_t> costs(static_cast<size_t>(batch.size), batch.axes.empty() ? 1 : 0);
  for (const auto& [letter, layout] : batch.axes) {
    for (size_t i = 0; i < costs.size(); ++i) {
      costs[i] += std::max(layout.padded_length, layout.lengths[i]);
    }
  }
  return costs;
}

TensorBatch PartOf(const TensorBatch& batch, const Signature& signature,
                   const BatchPart& sequences) {
  TensorBatch part;
  part.padding = batch.padding;
  part.size = sequences.count;
  struct Rows {
    int64_t first, count;
  };
  std::map<char, Rows> rows;
  for (const auto& [letter, layout] : batch.axes) {
    LayoutPart own = PartOf(layout, sequences.first, sequences.count);
    rows[letter] = {own.begin, own.layout.rows};
    part.axes[letter] = std::move(own.layout);
  }
  for (const auto& [name, tensor] : batch.inputs) {
    const auto laid_out = rows.find(signature.FindInput(name)->axes[0].letter);
    const Rows own =
        laid_out == rows.end() ? Rows{sequences.first, sequences.count} : laid_out->second;
    part.inputs[name] = tensor.narrow(0, own.first, own.count);
  }
  return part;
}

}  // namespace linserve
