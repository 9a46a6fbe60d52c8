#include "models/sparse/vocabulary_fold.h"

#include <cmath>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

void Weigh(at::Tensor& logits, bool twice) {
  logits.relu_().log1p_();
  if (twice) logits.log1p_();
}

}  // namespace

void VocabularyFold::Add(const RowBlock& logits, int64_t count, int64_t width,
                         float* weights) const {
  if (sum) {
    at::Tensor block = at::from_blob(logits.data, {count, width}, {logits.stride, 1}, at::kFloat);
    Weigh(block, twice);
    return AddRowSums(logits, count, width, weights);
  }
  for (int64_t row = 0; row < count; ++row) {
    const float* logit = logits.Rows(row).data;
    for (int64_t i = 0; i < width; ++i) {
      // A comparison with NaN is false, so that a NaN is taken by itself, and then stays.
      const bool more = static_cast<bool>(static_cast<int>(logit[i] > weights[i]) |
                                          static_cast<int>(std::isnan(logit[i])));
      weights[i] = more ? logit[i] : weights[i];
    }
  }
}

void VocabularyFold::Add(at::Tensor logits, const at::Tensor& weights) const {
  at::Tensor target = weights;
  if (sum) {
    Weigh(logits, twice);
    target.add_(logits.sum(0));
  } else {
    at::maximum_out(target, target, logits.amax(0));
  }
}

// A logarithm grows with its argument, so that one of the largest logit is the largest.
void VocabularyFold::Finish(at::Tensor& weights) const {
  if (!sum) Weigh(weights, twice);
}

}  // namespace linserve
