#include "models/sentences/pooled_sequences.h"

#include <algorithm>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

at::Tensor Pooled(const at::Tensor& rows, Pooling pooling) {
  if (pooling == Pooling::kCls) return rows.select(0, 0).to(at::kFloat);
  if (pooling == Pooling::kLast) return rows.select(0, -1).to(at::kFloat);
  if (pooling == Pooling::kMax) return rows.amax(0).to(at::kFloat);
  const auto count = static_cast<double>(std::max<int64_t>(rows.size(0), 1));
  return rows.sum(0, /*keepdim=*/false, at::kFloat) / count;
}

// Returns an undefined tensor if there is no kernel that takes these.
at::Tensor PoolOnDevice(const at::Tensor& rows, const LayoutTable& table, int64_t begin,
                        int64_t count, Pooling pooling) {
  const auto kernel = KernelsFor(rows).pool;
  if (kernel == nullptr) return {};
  RowsToPool which{.starts = table.starts.narrow(0, begin, count),
                   .counts = table.lengths.narrow(0, begin, count),
                   .chosen = {},
                   .largest = pooling == Pooling::kMax};
  if (pooling == Pooling::kLast) which.starts = which.starts + which.counts - 1;
  if (pooling == Pooling::kLast || pooling == Pooling::kCls) {
    which.counts = at::ones_like(which.counts);
  }
  return kernel(rows, which);
}

}  // namespace

at::Tensor PoolSequences(const RowsOfBatch& rows, const PlacedLayout& layout,
                         const at::Tensor& mask, int64_t begin, int64_t end, Pooling pooling) {
  if (layout.table && !mask.defined()) {
    const int64_t last =
        end < layout.sequences() ? layout.starts[static_cast<size_t>(end)] : layout.rows;
    at::Tensor pooled = PoolOnDevice(rows(0, last), *layout.table, begin, end - begin, pooling);
    if (pooled.defined()) return pooled;
  }
  CheckNotRecording(layout);
  std::vector<at::Tensor> vectors;
  for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
    const int64_t start = layout.starts[i];
    // Rows may cost something to make, of which the first alone is wanted.
    const int64_t wanted = pooling == Pooling::kCls && !mask.defined() ? 1 : layout.lengths[i];
    const at::Tensor own = rows(start, start + wanted);
    const at::Tensor there =
        mask.defined() ? mask.narrow(0, start, layout.lengths[i]) : at::Tensor();
    if (there.defined() && pooling == Pooling::kMean) {
      // A device would have to be waited for to know how many rows there are.
      const at::Tensor sum = own.masked_fill(there.logical_not().unsqueeze(1), 0)
                                 .sum(0, /*keepdim=*/false, at::kFloat);
      vectors.push_back(sum / there.sum().clamp_min(1));
    } else {
      vectors.push_back(Pooled(there.defined() ? own.index({there}) : own, pooling));
    }
  }
  return at::stack(vectors);
}

}  // namespace linserve
