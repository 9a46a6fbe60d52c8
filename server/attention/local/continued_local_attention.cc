#include "attention/local/continued_local_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/rows/aten.h"
#include "attention/rows/product.h"
#include "attention/rows/scratch.h"

namespace linserve {
namespace {

// Returns how many rows, from `row` on, end no later than each sequence's window: then none of them
// takes the place of one that another still sees.
int64_t RowsWithinWindows(const std::vector<int64_t>& positions, int64_t row, int64_t window) {
  int64_t most = window;
  for (const int64_t position : positions) {
    most = std::min(most, window - (position + row) % window);
  }
  return most;
}

// Marks what the rows at `begin` [sequences, 1] and the `count` - 1 after them do not see of what
// stands in the places: [sequences, 1, count, 2 · window].
at::Tensor OutsideWindow(const at::Tensor& begin, int64_t count, int64_t window) {
  const at::Tensor last = begin + (count - 1);
  // A place holds the latest of the positions that belong there.
  const at::Tensor held =
      last - (last - at::arange(2 * window, begin.options())).remainder(2 * window);
  const at::Tensor first = begin.div(window, "floor").sub_(1).mul_(window).clamp_min_(0);
  const at::Tensor rows = (begin + at::arange(count, begin.options())).unsqueeze(-1);
  const at::Tensor future = held.unsqueeze(1).gt(rows);
  return future.logical_or_(held.lt(first).unsqueeze(1)).unsqueeze(1);
}

// Puts `rows` [sequences, heads, count, dim_head] where those positions belong.
void Put(const at::Tensor& rows, const at::Tensor& begin, const at::Tensor& seen) {
  const at::Tensor places =
      (begin + at::arange(rows.size(-2), begin.options())).remainder(seen.size(-2));
  seen.scatter_(-2, places.unsqueeze(1).unsqueeze(-1).expand_as(rows), rows.to(at::kFloat));
}

}  // namespace

void ContinueLocalAttention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const std::vector<int64_t>& positions,
                            int64_t window, const WindowRows& seen, const at::Tensor& out) {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  const double scale = 1.0 / std::sqrt(static_cast<double>(queries.size(-1)));
  const int64_t rows = queries.size(-2);
  const int64_t at_once =
      CountAtOnce(queries.size(0) * queries.size(1) * 2 * window, queries.is_cpu());
  const at::Tensor start =
      at::tensor(positions, at::kLong).to(queries.device(), /*non_blocking=*/true).unsqueeze(-1);
  for (int64_t row = 0; row < rows;) {
    const int64_t count =
        std::min({at_once, rows - row, RowsWithinWindows(positions, row, window)});
    const auto part = [&](const at::Tensor& x) { return x.narrow(-2, row, count); };
    const at::Tensor begin = start + row;
    Put(part(keys), begin, seen.keys);
    Put(part(values), begin, seen.values);
    at::Tensor scores = Product(part(queries).to(at::kFloat) * scale, seen.keys.transpose(-2, -1));
    scores.masked_fill_(OutsideWindow(begin, count, window), kLowest);
    part(out).copy_(Product(at::softmax(scores, -1), seen.values));
    row += count;
  }
}

void StepLocalAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        int64_t position, int64_t window, const WindowRows& seen,
                        const at::Tensor& out) {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  const int64_t places = 2 * window;
  const int64_t place = position % places;
  seen.keys.select(-2, place).copy_(key.squeeze(-2));
  seen.values.select(-2, place).copy_(value.squeeze(-2));
  // A row in the second half of the places sees all places up to its own; one in the first half
  // sees those of the second, too, once there are any.
  const bool wraps = place < window && position >= places;
  const int64_t count = wraps ? places : place + 1;
  const auto rows = [&](const at::Tensor& x) { return x.narrow(-2, 0, count); };
  at::Tensor scores = Product(query.to(at::kFloat) * scale, rows(seen.keys).transpose(-2, -1));
  if (wraps) scores.narrow(-1, place + 1, window - place - 1).fill_(kLowest);
  out.copy_(Product(at::softmax(scores, -1), rows(seen.values)));
}

}  // namespace linserve
