#include "attention/linear/image_attention.h"

#include "attention/rows/aten.h"
#include "attention/rows/product.h"

namespace linserve {

// Each stripe is normalised by itself and weighed by its share of the mass, so that nothing is
// larger than a value, however many positions there are.
void ImageContext::Add(const at::Tensor& keys, const at::Tensor& values) {
  const at::Tensor wide = keys.to(at::kFloat);
  const at::Tensor weights = at::softmax(wide, -1).to(values.scalar_type());
  const at::Tensor sum = Product(weights, values.transpose(2, 3)).to(at::kFloat);
  const at::Tensor log_mass = at::logsumexp(wide, {-1}, /*keepdim=*/true);
  if (!sum_.defined()) {
    sum_ = sum;
    log_mass_ = log_mass;
    return;
  }
  const at::Tensor total = at::logaddexp(log_mass_, log_mass);
  sum_ = sum_ * (log_mass_ - total).exp_() + sum * (log_mass - total).exp_();
  log_mass_ = total;
}

at::Tensor AttendToContext(const at::Tensor& queries, const at::Tensor& context, bool normalize) {
  const at::Tensor weights = normalize ? at::softmax(queries, -2) : queries;
  return Product(context.to(queries.scalar_type()).transpose(2, 3), weights);
}

}  // namespace linserve
