#include "attention/linear/continued_linear_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/linear/causal_linear_attention.h"
#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/product.h"

namespace linserve {
namespace {

at::Tensor Turned(const at::Tensor& x) { return x.transpose(-2, -1); }

at::Tensor Rows(const at::Tensor& x, int64_t row, int64_t count) {
  return x.narrow(-2, row, count).to(at::kFloat);
}

// Holds queries as q̂ times exp(shift), over exp(scale), which keeps their largest feature at 1.
struct Queries {
  at::Tensor features;  // [..., rows, dim_head]
  at::Tensor scale;     // [..., rows, 1]

  Queries(const at::Tensor& rows, const at::Tensor& shift) {
    const double width = static_cast<double>(rows.size(-1));
    const at::Tensor powers = at::log_softmax(rows, -1) + Turned(shift) - 0.5 * std::log(width);
    scale = powers.amax(-1, /*keepdim=*/true);
    features = (powers - scale).exp_();
  }
};

// Says in which buckets the rows of some sequences [sequences, 1] lie, `count` rows from `begin`
// on.
struct Buckets {
  at::Tensor of_rows;  // [sequences, count]
  at::Tensor first;    // [sequences, 1]: of the first row
  at::Tensor next;     // [sequences, 1]: of the row after the last one

  Buckets(const at::Tensor& begin, int64_t count, int64_t size)
      : of_rows((begin + at::arange(count, begin.options())).div_(size, "floor")),
        first(begin.div(size, "floor")),
        next((begin + count).div_(size, "floor")) {}

  // Is 1 where row t (down) sees row s of these: [sequences, 1, count, count].
  at::Tensor Visible() const {
    return of_rows.unsqueeze(1).lt(of_rows.unsqueeze(2)).unsqueeze(1).to(at::kFloat);
  }
  // Is 1 for rows that see the bucket that was open before them: [sequences, 1, count, 1].
  at::Tensor PastFirst() const { return Column(of_rows.gt(first)); }
  // Is 1 for rows whose bucket is complete: [sequences, 1, count, 1].
  at::Tensor Complete() const { return Column(of_rows.lt(next)); }
  // Is 1 if the bucket that was open is complete: [sequences, 1, 1, 1].
  at::Tensor FirstComplete() const { return Column(next.gt(first)); }

 private:
  static at::Tensor Column(const at::Tensor& flags) {
    return flags.unsqueeze(1).unsqueeze(-1).to(at::kFloat);
  }
};

void Add(const at::Tensor& weights, const at::Tensor& values, const at::Tensor& context,
         const at::Tensor& total) {
  AddProducts(context, weights, values);
  total.add_(Turned(weights.sum(-2, /*keepdim=*/true)));
}

// Makes the sums relative to `shift` instead of `old`, which then is the same. A device would have
// to be waited for to know that there is nothing to do.
void Rescale(const at::Tensor& context, const at::Tensor& total, const at::Tensor& old,
             const at::Tensor& shift) {
  if (shift.is_cpu() && at::equal(shift, old)) return;
  const at::Tensor factor = (old - shift).exp_();
  context.mul_(factor);
  total.mul_(factor);
  old.copy_(shift);
}

// Returns the shift that sums need before keys of these rows are added to them, so that no exp(k)
// is too large.
at::Tensor ShiftFor(const at::Tensor& keys, const at::Tensor& shift) {
  return at::maximum(shift, Turned(keys.amax(-2, /*keepdim=*/true)) - kLargestExponent);
}

// Adds the open bucket's sums to those that are seen, where `complete` is 1 and not 0.
void CloseBuckets(const at::Tensor& complete, const ContinuedSums& sums) {
  const at::Tensor shift = at::maximum(sums.shift, sums.open_shift * complete);
  Rescale(sums.context, sums.total, sums.shift, shift);
  const at::Tensor moved = (sums.open_shift - shift).clamp_max_(0).exp_().mul_(complete);
  sums.context.add_(sums.open_context * moved);
  sums.total.add_(sums.open_total * moved);
  // Their shift stays: what is too small beside it is so beside what is seen, too.
  sums.open_context.mul_(1 - complete);
  sums.open_total.mul_(1 - complete);
}

class RowsContinuation {
 public:
  RowsContinuation(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                   const std::vector<int64_t>& positions, int64_t bucket, const ContinuedSums& sums,
                   const at::Tensor& out, const CausalDivisor& divisor)
      : queries_(queries),
        keys_(keys),
        values_(values),
        positions_(at::tensor(positions, at::kLong)
                       .to(keys.device(), /*non_blocking=*/true)
                       .unsqueeze(-1)),
        bucket_(bucket),
        sums_(sums),
        out_(out),
        divisor_(divisor) {}

  void Attend(int64_t row, int64_t count) {
    const at::Tensor keys = Rows(keys_, row, count);
    if (count > 1 && !FitTogether(keys)) {
      Attend(row, count / 2);
      return Attend(row + count / 2, count - count / 2);
    }
    const at::Tensor values = Rows(values_, row, count);
    if (bucket_ == 1) {
      AttendToAll(row, keys, values);
    } else {
      AttendToBuckets(row, keys, values);
    }
  }

 private:
  // Says whether no row loses what it sees to the shift that a later one needs.
  bool FitTogether(const at::Tensor& keys) const {
    const at::Tensor shift = ShiftFor(keys, sums_.shift);
    if (bucket_ > 1) return at::equal(shift, sums_.shift) && at::equal(shift, sums_.open_shift);
    return (shift - sums_.shift).max().item<double>() <= kLargestExponent;
  }

  void AttendToAll(int64_t row, const at::Tensor& keys, const at::Tensor& values) {
    const at::Tensor shift = ShiftFor(keys, sums_.shift);
    Rescale(sums_.context, sums_.total, sums_.shift, shift);
    const at::Tensor weights = (keys - Turned(shift)).exp_();
    const Queries queries(Rows(queries_, row, keys.size(-2)), shift);
    const at::Tensor scores = Product(queries.features, Turned(weights)).tril_();
    Write(row, queries, Product(queries.features, sums_.context).add_(Product(scores, values)),
          Product(queries.features, sums_.total).add_(scores.sum(-1, /*keepdim=*/true)));
    Add(weights, values, sums_.context, sums_.total);
  }

  // Several rows have one shift, and so has the open bucket; a row alone sees no key of its own.
  void AttendToBuckets(int64_t row, const at::Tensor& keys, const at::Tensor& values) {
    const int64_t count = keys.size(-2);
    const Buckets buckets(positions_ + row, count, bucket_);
    const Queries queries(Rows(queries_, row, count), sums_.shift);
    Rescale(sums_.open_context, sums_.open_total, sums_.open_shift,
            ShiftFor(keys, sums_.open_shift));
    const at::Tensor weights = (keys - Turned(sums_.open_shift)).exp_();
    at::Tensor result = Product(queries.features, sums_.context);
    at::Tensor divisor = Product(queries.features, sums_.total);
    if (count > 1) {
      const at::Tensor later = queries.features * buckets.PastFirst();
      const at::Tensor scores = Product(queries.features, Turned(weights)).mul_(buckets.Visible());
      result.add_(Product(later, sums_.open_context)).add_(Product(scores, values));
      divisor.add_(Product(later, sums_.open_total)).add_(scores.sum(-1, /*keepdim=*/true));
    }
    Write(row, queries, result, divisor);
    const at::Tensor first_complete = buckets.FirstComplete();
    if (count == 1) {
      Add(weights, values, sums_.open_context, sums_.open_total);
      return CloseBuckets(first_complete, sums_);
    }
    CloseBuckets(first_complete, sums_);
    const at::Tensor complete = weights * buckets.Complete();
    Add(complete, values, sums_.context, sums_.total);
    Add(weights - complete, values, sums_.open_context, sums_.open_total);
  }

  void Write(int64_t row, const Queries& queries, const at::Tensor& result,
             const at::Tensor& divisor) const {
    const double width = static_cast<double>(queries_.size(-1));
    const at::Tensor unit = (-queries.scale).exp_();
    const at::Tensor floor = (unit * divisor_.floor).clamp_min_(std::numeric_limits<float>::min());
    const at::Tensor added = unit.mul_(divisor_.added / std::sqrt(width));
    out_.narrow(-2, row, result.size(-2)).copy_(result / at::maximum(divisor, floor).add_(added));
  }

  const at::Tensor& queries_;
  const at::Tensor& keys_;
  const at::Tensor& values_;
  at::Tensor positions_;  // [sequences, 1]
  int64_t bucket_;
  const ContinuedSums& sums_;
  const at::Tensor& out_;
  CausalDivisor divisor_;
};

}  // namespace

void ContinueLinearAttention(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const std::vector<int64_t>& positions,
                             int64_t bucket, const ContinuedSums& sums, const at::Tensor& out,
                             const CausalDivisor& divisor) {
  RowsContinuation continuation(queries, keys, values, positions, bucket, sums, out, divisor);
  for (int64_t row = 0; row < keys.size(-2); row += kCausalBlock) {
    continuation.Attend(row, std::min(kCausalBlock, keys.size(-2) - row));
  }
}

}  // namespace linserve
