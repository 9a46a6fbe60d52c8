#include "attention/local/local_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/product.h"
#include "attention/rows/scratch.h"

namespace linserve {
namespace {

constexpr double kOutside = -1;  // the package's keys and values outside the sequence

// Widens F16 to F32, since scores overflow in F16.
at::Tensor Widened(const at::Tensor& x) {
  return x.scalar_type() == at::kHalf ? x.to(at::kFloat) : x;
}

// Gives what `windows` windows from `first` on see of x along its `axis` (-1 or -2), `fill`
// outside: [..., windows, ·, slots], the slots last.
struct Slots {
  int64_t first;
  int64_t windows;
  int64_t window;
  int64_t count;  // of one window: 2 or 3 windows

  at::Tensor Of(const at::Tensor& x, int64_t axis, const at::Scalar& fill) const {
    const int64_t begin = (first - 1) * window;
    const int64_t end = begin + (windows - 1) * window + count;
    const int64_t from = std::max<int64_t>(begin, 0);
    const int64_t to = std::min(end, x.size(axis));
    std::vector<int64_t> padding(static_cast<size_t>(-2 * axis), 0);
    padding[padding.size() - 2] = from - begin;
    padding[padding.size() - 1] = end - to;
    return at::constant_pad_nd(x.narrow(axis, from, to - from), padding, fill)
        .unfold(axis, count, window);
  }
};

class WindowAttention {
 public:
  WindowAttention(const Slots& slots, const at::Tensor& keys, const at::Tensor& values,
                  const at::Tensor& visible, bool outside_is_seen, bool causal)
      : slots_(slots),
        causal_(causal),
        keys_(Widened(slots.Of(keys, -2, kOutside))),
        values_(Widened(slots.Of(values, -2, kOutside)).transpose(-2, -1)),
        hidden_(slots.Of(visible, -1, outside_is_seen).logical_not().unsqueeze(-2)) {}

  // Takes queries [..., windows, rows, dim_head]: rows from `row` on of each window.
  at::Tensor Attend(const at::Tensor& queries, int64_t row) const {
    constexpr double kLowest = std::numeric_limits<float>::lowest();
    const double scale = 1.0 / std::sqrt(static_cast<double>(queries.size(-1)));
    at::Tensor scores = Product(Widened(queries) * scale, keys_).to(at::kFloat);
    scores.masked_fill_(hidden_, kLowest);
    if (causal_) {
      // Slot s lies `window` rows before the window's own row s.
      const auto future = at::ones({queries.size(-2), slots_.count}, hidden_.options())
                              .triu(slots_.window + row + 1);
      scores.masked_fill_(future, kLowest);
    }
    return Product(at::softmax(scores, -1).to(values_.scalar_type()), values_);
  }

 private:
  Slots slots_;
  bool causal_;
  at::Tensor keys_;    // [..., windows, dim_head, slots]
  at::Tensor values_;  // [..., windows, slots, dim_head]
  at::Tensor hidden_;  // [..., windows, 1, slots]
};

}  // namespace

void LocalAttention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const at::Tensor& mask, int64_t window, bool causal, const at::Tensor& out,
                    bool outside_is_seen) {
  const int64_t length = queries.size(-2);
  window = std::min(window, keys.size(-2));  // one sees all there is, however long it is
  const int64_t slots = (causal ? 2 : 3) * window;
  const int64_t heads = queries.numel() / (length * queries.size(-1));
  const at::Tensor visible =
      mask.defined() ? mask : at::ones({keys.size(-2)}, keys.options().dtype(at::kBool));
  const int64_t rows_at_once = CountAtOnce(heads * slots, queries.is_cpu());
  const int64_t windows_at_once = std::max<int64_t>(1, rows_at_once / window);
  for (int64_t first = 0; first * window < length;) {
    // Whole windows together; a shorter last one is alone.
    const int64_t left = length - first * window;
    const int64_t windows = std::clamp<int64_t>(left / window, 1, windows_at_once);
    const int64_t window_rows = std::min(window, left);
    const WindowAttention attention({first, windows, window, slots}, keys, values, visible,
                                    outside_is_seen, causal);
    const auto rows_of = [&](const at::Tensor& x) {
      return x.narrow(-2, first * window, windows * window_rows)
          .unflatten(-2, {windows, window_rows});
    };
    for (int64_t row = 0; row < window_rows; row += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, window_rows - row);
      rows_of(out)
          .narrow(-2, row, rows)
          .copy_(attention.Attend(rows_of(queries).narrow(-2, row, rows), row));
    }
    first += windows;
  }
}

double LocalAttentionPairs(int64_t length, int64_t window, bool causal) {
  const int64_t windows = length / window;  // full ones
  const auto full = static_cast<double>(windows);
  const auto rest = static_cast<double>(length - windows * window);  // rows of the last one
  const auto rows = static_cast<double>(window);
  const double own = full * rows * rows + rest * rest;
  if (windows == 0) return own;
  const double before = (full - 1) * rows * rows + rest * rows;
  return own + before * (causal ? 1 : 2);
}

}  // namespace linserve
