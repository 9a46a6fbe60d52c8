#include "models/linear_attention_transformer/product_key_memory.h"

#include <tuple>
#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/product.h"
#include "attention/rows/scratch.h"

namespace linserve::linear_attention_transformer {
namespace {

constexpr int64_t kHeads = 4;
constexpr int64_t kKeys = 128;  // of each half
constexpr int64_t kDimHead = 128;
constexpr int64_t kBest = 32;

// Finds the best of the values by score, per row and head: scores and indices [rows, heads, kBest].
// It is enough to look among the halves' best. dots [2, heads, rows, kKeys].
std::tuple<at::Tensor, at::Tensor> BestValues(const at::Tensor& dots) {
  const auto [scores, indices] = at::topk(dots.transpose(1, 2), kBest);
  const at::Tensor sums =
      (scores.select(0, 0).unsqueeze(-1) + scores.select(0, 1).unsqueeze(-2)).flatten(-2);
  const auto [best, pairs] = at::topk(sums, kBest);
  const at::Tensor first = indices.select(0, 0).gather(-1, pairs.div(kBest, "floor"));
  const at::Tensor second = indices.select(0, 1).gather(-1, pairs.remainder(kBest));
  return {best, first * kKeys + second};
}

}  // namespace

ProductKeyMemory::ProductKeyMemory(int64_t dim)
    : dim_(dim), to_queries_(dim, 2 * kHeads * kDimHead, /*biased=*/false), norm_(kDimHead) {}

void ProductKeyMemory::Declare(const Scope& scope) {
  to_queries_.Declare(scope / "to_queries");
  norm_.Declare(scope / "norm");
  scope.Declare("keys", keys_, {kHeads, kKeys, 2, kDimHead}, Init::kNormal);
  (scope / "values").Declare("weight", values_, {kKeys * kKeys, dim_}, Init::kNormal);
}

at::Tensor ProductKeyMemory::operator()(const at::Tensor& x) const {
  const std::vector<at::Tensor> slices =
      x.split(CountAtOnce(kHeads * (kBest * kBest + 3 * kKeys), x.is_cpu()));
  if (slices.size() == 1) return LookUp(x);
  std::vector<at::Tensor> results;
  for (const at::Tensor& slice : slices) results.push_back(LookUp(slice));
  return at::cat(results);
}

at::Tensor ProductKeyMemory::LookUp(const at::Tensor& x) const {
  // These are [2, heads, rows, dim_head]. Scores are in F32, since their order decides which values
  // count.
  const at::Tensor queries = norm_(to_queries_(x).unflatten(-1, {2, kHeads, kDimHead}))
                                 .to(at::kFloat)
                                 .permute({1, 2, 0, 3});
  const at::Tensor dots = Product(queries, keys_.to(at::kFloat).permute({2, 0, 3, 1}));
  const auto [scores, indices] = BestValues(dots);
  const at::Tensor weights = at::softmax(scores, -1).to(values_.scalar_type());
  const int64_t count = kHeads * kBest;  // values of a row
  const at::Tensor offsets = at::arange(0, x.size(0) * count, count, indices.options());
  constexpr int64_t kSum = 0;
  return std::get<0>(at::embedding_bag(values_, indices.reshape(-1), offsets,
                                       /*scale_grad_by_freq=*/false, kSum, /*sparse=*/false,
                                       weights.reshape(-1)));
}

int64_t ProductKeyMemory::Flops() const {
  const int64_t dots = 2 * 2 * kHeads * kKeys * kDimHead;
  const int64_t sums = kHeads * kBest * kBest;
  return to_queries_.Flops() + dots + sums + 2 * kHeads * kBest * dim_;
}

}  // namespace linserve::linear_attention_transformer
