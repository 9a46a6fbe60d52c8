#include "attention/linear/causal_linear_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/product.h"
#include "attention/rows/scratch.h"

namespace linserve {
namespace {

constexpr double kLargestExponent64 = 600;  // the same in F64

double LargestExponent(at::ScalarType type) {
  return type == at::kDouble ? kLargestExponent64 : kLargestExponent;
}

double SmallestNormal(at::ScalarType type) {
  return type == at::kDouble ? std::numeric_limits<double>::min()
                             : double{std::numeric_limits<float>::min()};
}

// Returns the type in which exp(k) can be computed for these keys and what was read before them.
at::ScalarType ComputeType(const at::Tensor& keys, const CausalState& state) {
  if (state.context.defined() && state.context.scalar_type() == at::kDouble) return at::kDouble;
  return keys.max().item<double>() > kLargestExponent ? at::kDouble : at::kFloat;
}

// Fills an empty state with zeros, and converts another one to the type.
void Prepare(CausalState& state, const at::Tensor& keys, at::ScalarType type) {
  if (state.context.defined()) {
    for (at::Tensor* part : {&state.context, &state.total, &state.shift}) *part = part->to(type);
    return;
  }
  std::vector<int64_t> shape = keys.sizes().vec();
  const auto options = keys.options().dtype(type);
  shape[shape.size() - 2] = shape.back();
  state.context = at::zeros(shape, options);
  shape[shape.size() - 2] = 1;
  state.total = at::zeros(shape, options);
  shape.back() = 1;
  state.shift = at::zeros(shape, options);
}

// Views rows [row, row + blocks · length) of x as [..., blocks, length, width].
at::Tensor Blocks(const at::Tensor& x, int64_t row, int64_t blocks, int64_t length) {
  return x.narrow(-2, row, blocks * length).unflatten(-2, {blocks, length});
}

// Computes exp(k - shift), where the shift grows as far as these keys [..., blocks, length,
// dim_head] need.
at::Tensor Weights(const at::Tensor& keys, CausalState& state) {
  const at::Tensor most = keys.amax({-3, -2, -1}, /*keepdim=*/true).squeeze(-3);
  const at::Tensor shift = at::maximum(state.shift, most - LargestExponent(keys.scalar_type()));
  const at::Tensor factor = (state.shift - shift).exp_();
  state.context = state.context * factor;
  state.total = state.total * factor;
  state.shift = shift;
  return (keys - shift.unsqueeze(-3)).exp_();
}

// Returns 1 where row t (down) sees row s of its own block. Empty: it sees none.
at::Tensor VisibleBuckets(int64_t length, int64_t bucket, const at::TensorOptions& options) {
  if (bucket == 1) return at::ones({length, length}, options).tril();
  if (bucket >= length) return {};
  const at::Tensor buckets =
      at::arange(length, options.dtype(at::kLong)).div_(bucket, "floor").to(options);
  return buckets.unsqueeze(0).lt(buckets.unsqueeze(1)).to(options);
}

// Returns the sums over what lies before each block, [..., blocks, ·, ·]; `before` becomes the sum
// over all.
at::Tensor SumsBefore(const at::Tensor& sums, at::Tensor& before) {
  at::Tensor running = at::empty_like(sums);
  for (int64_t block = 0; block < sums.size(-3); ++block) {
    running.select(-3, block).copy_(before);
    before = before + sums.select(-3, block);
  }
  return running;
}

// Describes blocks that are computed at once: `blocks` of `length` rows each, from `row` on.
struct Group {
  int64_t row;
  int64_t blocks;
  int64_t length;
};

class CausalPass {
 public:
  CausalPass(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
             const at::Tensor& mask, int64_t bucket, CausalState& state, const at::Tensor& out,
             const CausalDivisor& divisor)
      : queries_(queries),
        keys_(keys),
        values_(values),
        mask_(mask),
        bucket_(bucket),
        state_(state),
        out_(out),
        divisor_(divisor),
        query_scale_(1.0 / std::sqrt(static_cast<double>(keys.size(-1)))),
        type_(ComputeType(keys, state)) {
    Prepare(state_, keys, type_);
  }

  void Attend(const Group& group) {
    const at::Tensor weights = Weights(Keys(group), state_);
    const at::Tensor values = Contiguous(values_, group);
    const at::Tensor queries = at::softmax(Contiguous(queries_, group), -1).mul_(query_scale_);
    const at::Tensor products = Product(weights.transpose(-2, -1), values);
    const at::Tensor totals = SumsBefore(weights.sum({-2}, /*keepdim=*/true), state_.total);
    at::Tensor result = Product(queries, SumsBefore(products, state_.context));
    at::Tensor divisor = Product(queries, totals.transpose(-2, -1));
    const at::Tensor open = VisibleBuckets(group.length, bucket_, weights.options());
    if (open.defined()) {
      const at::Tensor scores = Product(queries, weights.transpose(-2, -1)).mul_(open);
      result.add_(Product(scores, values));
      divisor.add_(scores.sum({-1}, /*keepdim=*/true));
    }
    const at::Tensor unit = (-state_.shift).exp_().unsqueeze(-3);
    divisor = at::maximum(divisor, (unit * divisor_.floor).clamp_min_(SmallestNormal(type_)));
    divisor.add_(unit, divisor_.added * query_scale_);
    Blocks(out_, group.row, group.blocks, group.length).copy_(result.div_(divisor));
  }

 private:
  // Makes the blocks contiguous, so that no product has to make a copy of its own.
  at::Tensor Contiguous(const at::Tensor& x, const Group& group) const {
    return Blocks(x, group.row, group.blocks, group.length).to(type_).contiguous();
  }

  at::Tensor Keys(const Group& group) const {
    at::Tensor keys = Contiguous(keys_, group);
    if (!mask_.defined()) return keys;
    const at::Tensor mask = Blocks(mask_.unsqueeze(-1), group.row, group.blocks, group.length);
    const at::Tensor hidden = mask.logical_not();
    return keys.masked_fill(hidden, std::numeric_limits<float>::lowest());
  }

  const at::Tensor& queries_;
  const at::Tensor& keys_;
  const at::Tensor& values_;
  const at::Tensor& mask_;
  int64_t bucket_;
  CausalState& state_;
  const at::Tensor& out_;
  CausalDivisor divisor_;
  double query_scale_;
  at::ScalarType type_;
};

}  // namespace

void CausalLinearAttention(const at::Tensor& queries, const at::Tensor& keys,
                           const at::Tensor& values, const at::Tensor& mask, int64_t bucket,
                           CausalState& state, const at::Tensor& out,
                           const CausalDivisor& divisor) {
  const int64_t rows = keys.size(-2);
  const int64_t heads = keys.numel() / (rows * keys.size(-1));
  // A block holds whole buckets, so that what lies before it lies before all of its rows' buckets.
  const int64_t block = bucket * std::max<int64_t>(1, kCausalBlock / bucket);
  const int64_t most = CountAtOnce(heads * (block + keys.size(-1)) * keys.size(-1), keys.is_cpu());
  CausalPass pass(queries, keys, values, mask, bucket, state, out, divisor);
  int64_t row = 0;
  while (rows - row >= block) {
    const int64_t blocks = std::min(most, (rows - row) / block);
    pass.Attend({row, blocks, block});
    row += blocks * block;
  }
  if (row < rows) pass.Attend({row, 1, rows - row});
}

}  // namespace linserve
