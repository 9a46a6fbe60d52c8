#include "models/transformers/token_dropout.h"

#include "attention/rows/aten.h"

namespace linserve::transformers {
namespace {

constexpr double kKept = 1 - 0.15 * 0.8;  // the share of tokens that were not masked in training

// Holds where sequences are: I64 [batch].
struct Bounds {
  at::Tensor starts, lengths;
};

Bounds BoundsOn(const at::Device& device, const PlacedLayout& layout) {
  if (layout.table)
    return {layout.table->starts.to(at::kLong), layout.table->lengths.to(at::kLong)};
  const auto place = [&](const std::vector<int64_t>& numbers) {
    return at::tensor(numbers, at::kLong).to(device);
  };
  return {place(layout.starts), place(layout.lengths)};
}

}  // namespace

std::vector<float> TokenFactors(const int64_t* ids, int64_t rows, int64_t mask_token,
                                const Context& context) {
  std::vector<float> factors(static_cast<size_t>(rows));
  const bool* visible = context.mask.defined() ? context.mask.const_data_ptr<bool>() : nullptr;
  const PlacedLayout& layout = context.layout;
  for (size_t i = 0; i < layout.lengths.size(); ++i) {
    const int64_t begin = layout.starts[i];
    const int64_t end = begin + layout.lengths[i];
    int64_t seen = 0;
    int64_t masked = 0;
    for (int64_t row = begin; row < end; ++row) {
      seen += visible == nullptr || visible[row] ? 1 : 0;
      masked += ids[row] == mask_token ? 1 : 0;
    }
    const double factor =
        seen == masked ? 0 : kKept * static_cast<double>(seen) / static_cast<double>(seen - masked);
    for (int64_t row = begin; row < end; ++row) {
      factors[static_cast<size_t>(row)] = ids[row] == mask_token ? 0 : static_cast<float>(factor);
    }
  }
  return factors;
}

at::Tensor TokenFactors(const at::Tensor& ids, int64_t mask_token, const Context& context) {
  const auto [starts, lengths] = BoundsOn(ids.device(), context.layout);
  const at::Tensor is_masked = ids.eq(mask_token);
  const auto count = [&, starts = starts, ends = starts + lengths](const at::Tensor& which) {
    const at::Tensor before = at::constant_pad_nd(which.to(at::kLong).cumsum(0), {1, 0});
    return before.index_select(0, ends) - before.index_select(0, starts);
  };
  const at::Tensor seen = context.mask.defined() ? count(context.mask) : lengths;
  const at::Tensor left = seen - count(is_masked);
  const at::Tensor factors =
      at::where(left.eq(0), 0.0, kKept * seen.to(at::kFloat) / left.to(at::kFloat));
  const at::Tensor rows = at::arange(ids.size(0), ids.options().dtype(at::kLong));
  const at::Tensor sequences = at::searchsorted(starts, rows, /*out_int32=*/false, /*right=*/true);
  return factors.index_select(0, sequences - 1).masked_fill_(is_masked, 0);
}

}  // namespace linserve::transformers
