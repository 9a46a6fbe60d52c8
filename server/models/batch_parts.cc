#include "models/batch_parts.h"

#include <algorithm>
#include <numeric>

#include "attention/aten.h"
#include "attention/row_runs.h"

namespace linserve {
namespace {

// Fewer rows are not worth a range of their own; more are not faster, and let threads end apart.
constexpr int64_t kFewestRowsOfRange = 256;
constexpr int64_t kMostRowsOfRange = 512;
// What all threads together reach inside the products, as a share of what they reach side by side.
constexpr double kWithinProducts = 0.7;

}  // namespace

std::vector<SequenceRange> ShareOut(const std::vector<int64_t>& costs, int64_t threads) {
  const auto sequences = static_cast<int64_t>(costs.size());
  std::vector<SequenceRange> whole = {{0, sequences}};
  if (threads == 1 || sequences == 1) return whole;
  const int64_t total = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  const int64_t aim = std::clamp(total / threads, kFewestRowsOfRange, kMostRowsOfRange);
  std::vector<SequenceRange> ranges;
  int64_t rows = 0;
  int64_t largest = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t cost = costs[static_cast<size_t>(i)];
    // A range ends where it is nearest to the aim.
    if (ranges.empty() || rows + cost / 2 > aim) {
      ranges.push_back({i, 0});
      rows = 0;
    }
    ++ranges.back().count;
    rows += cost;
    largest = std::max(largest, rows);
  }
  const auto busy = std::min(threads, static_cast<int64_t>(ranges.size()));
  const double side_by_side =
      static_cast<double>(total) / static_cast<double>(std::max(largest, total / busy));
  return side_by_side < kWithinProducts * static_cast<double>(threads) ? whole : ranges;
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
                   const SequenceRange& range) {
  TensorBatch part;
  part.padding = batch.padding;
  part.size = range.count;
  std::map<char, SequenceRange> rows;
  for (const auto& [letter, layout] : batch.axes) {
    LayoutPart own = PartOf(layout, range.first, range.count);
    rows[letter] = {own.begin, own.layout.rows};
    part.axes[letter] = std::move(own.layout);
  }
  for (const auto& [name, tensor] : batch.inputs) {
    const auto laid_out = rows.find(signature.FindInput(name)->axes[0].letter);
    const SequenceRange& own = laid_out == rows.end() ? range : laid_out->second;
    part.inputs[name] = tensor.narrow(0, own.first, own.count);
  }
  return part;
}

}  // namespace linserve
