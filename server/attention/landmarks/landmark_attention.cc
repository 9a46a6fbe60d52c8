#include "attention/landmarks/landmark_attention.h"

#include <cmath>

#include "attention/rows/aten.h"
#include "attention/rows/attention_rows.h"
#include "attention/rows/product.h"

namespace linserve {
namespace {

at::Tensor Scores(const at::Tensor& queries, const at::Tensor& keys) {
  return Product(queries / std::sqrt(static_cast<double>(queries.size(-1))),
                 keys.transpose(-2, -1));
}

// Returns the pseudo-inverse of kernel [..., heads, landmarks, landmarks], whose rows sum to one.
at::Tensor PseudoInverse(const at::Tensor& kernel, bool by_head) {
  constexpr int kSteps = 6;
  const at::Tensor sums = kernel.sum(-2, /*keepdim=*/true);
  const at::Tensor largest =
      by_head ? sums.amax({-2, -1}, /*keepdim=*/true) : sums.amax({-3, -2, -1}, /*keepdim=*/true);
  const at::Tensor one = at::eye(kernel.size(-1), kernel.options());
  at::Tensor inverse = kernel.transpose(-2, -1) / largest;
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor product = Product(kernel, inverse);
    const at::Tensor inner = one * 15 - Product(product, one * 7 - product);
    inverse = Product(inverse * 0.25, one * 13 - Product(product, inner));
  }
  return inverse;
}

}  // namespace

at::Tensor SegmentMeans(const at::Tensor& rows, int64_t count) {
  return rows.unflatten(-2, {count, rows.size(-2) / count}).mean(-2);
}

at::Tensor LandmarkValues(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& attended, bool by_head) {
  // The steps magnify what is rounded in directions that the landmarks hardly tell apart.
  const at::Tensor kernel = at::softmax(Scores(queries.to(at::kDouble), keys.to(at::kDouble)), -1);
  return Product(PseudoInverse(kernel, by_head), attended.to(at::kDouble)).to(attended.dtype());
}

at::Tensor LandmarkAttention(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const at::Tensor& mask, int64_t landmarks,
                             bool by_head) {
  // The inverse magnifies what is rounded.
  const at::ScalarType type = SumType(queries);
  const at::Tensor all_queries = queries.to(type);
  const at::Tensor all_keys = keys.to(type);
  const at::Tensor query_means = SegmentMeans(all_queries, landmarks);
  const at::Tensor key_means = SegmentMeans(all_keys, landmarks);
  at::Tensor scores = Scores(query_means, all_keys);
  if (mask.defined()) scores = scores + mask;
  const at::Tensor attended = Product(at::softmax(scores, -1), values.to(type));
  const at::Tensor result = Product(at::softmax(Scores(all_queries, key_means), -1),
                                    LandmarkValues(query_means, key_means, attended, by_head));
  return result.to(values.dtype());
}

at::Tensor ConvolveRows(const at::Tensor& rows, const at::Tensor& kernel) {
  return at::conv2d(rows, kernel, /*bias=*/{}, /*stride=*/1,
                    /*padding=*/{kernel.size(2) / 2, 0}, /*dilation=*/1, /*groups=*/rows.size(1));
}

}  // namespace linserve
