#include "models/tokens/token_embedding.h"

#include <algorithm>
#include <vector>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {

void TokenEmbedding::Declare(const Scope& scope, int64_t tokens, int64_t width) {
  scope.Declare("weight", weight_, {tokens, width}, Init::kNormal);
  if (rounds_) scope.Rounds(weight_);
}

at::Tensor TokenEmbedding::operator()(const at::Tensor& ids) const {
  if (!is_cpu()) return at::embedding(weight_, ids);
  const at::Tensor words = ids.contiguous();
  const auto* word = words.const_data_ptr<int64_t>();
  const int64_t width = weight_.size(1);
  at::Tensor rows = at::empty({words.numel(), width}, options());
  ForBlocks(words.numel(), /*scratch_elements=*/0, [&](int64_t begin, int64_t count, float*) {
    for (int64_t row = begin; row < begin + count; ++row) Copy(word[row], BlockOf(rows, row).data);
  });
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(width);
  return rows.view(shape);
}

void TokenEmbedding::Copy(int64_t id, float* row) const {
  const int64_t width = weight_.size(1);
  if (weight_.scalar_type() == at::kFloat) {
    std::copy_n(BlockOf(weight_, id).data, width, row);
  } else {
    std::copy_n(weight_.const_data_ptr<c10::BFloat16>() + id * width, width, row);
  }
}

at::TensorOptions TokenEmbedding::options() const {
  return weight_.is_cpu() ? weight_.options().dtype(at::kFloat) : weight_.options();
}

}  // namespace linserve
