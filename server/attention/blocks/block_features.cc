#include "attention/blocks/block_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {

BlockFeatures::BlockFeatures(const RandomFeatures& random)
    : width_(random.projection.size(1)),
      features_(random.features()),
      random_(random),
      directions_((random.projection.to(at::kFloat) * random.scale).t().contiguous()) {}

BlockFeatures BlockFeatures::Taylor(int64_t width) {
  BlockFeatures features(width);
  features.features_ = width + 1;
  features.taylor_ = true;
  return features;
}

void BlockFeatures::Set(const RowBlock& rows, int64_t count, int64_t heads,
                        const RowBlock& out) const {
  if (!taylor_ && !directions_.defined()) return EluPlusOne(rows, count, heads * width_, out);
  for (int64_t head = 0; head < heads; ++head) {
    const RowBlock own = rows.Columns(head * width_);
    const RowBlock features = out.Columns(head * features_);
    taylor_ ? SetTaylor(own, count, features) : SetHead(own, count, features);
  }
}

void BlockFeatures::SetTaylor(const RowBlock& rows, int64_t count, const RowBlock& out) const {
  constexpr float kSmallestNorm = 1e-12F;
  for (int64_t i = 0; i < count; ++i) {
    const float* row = rows.Rows(i).data;
    float* features = out.Rows(i).data;
    if (row[0] == std::numeric_limits<float>::lowest()) {
      std::fill_n(features, features_, 0.0F);
      continue;
    }
    float square = 0;
    AddDots(rows.Rows(i), 1, width_, row, &square);
    features[0] = 1;
    const float norm = std::max(std::sqrt(square), kSmallestNorm);
    // Keys that oppose a query weigh nothing: divided, heads of one feature are 1 or -1 exactly.
    for (int64_t j = 0; j < width_; ++j) features[j + 1] = row[j] / norm;
  }
}

void BlockFeatures::SetHead(const RowBlock& rows, int64_t count, const RowBlock& out) const {
  const int64_t directions = directions_.size(1);
  const int64_t random = features_ - (random_.constant ? 1 : 0);
  BlockProduct(count, directions, width_, rows, BlockOf(directions_), out, /*add=*/false);
  switch (random_.map) {
    case RandomFeatures::Map::kPositive:
    case RandomFeatures::Map::kMirrored:
      Exponentiate(rows, count, out);
      break;
    case RandomFeatures::Map::kFourier:
      TakeCosines(count, out);
      break;
    case RandomFeatures::Map::kKernel:
      BiasActivate(random_.kernel, out, count, directions, nullptr);
      break;
  }
  const auto eps = static_cast<float>(random_.eps);
  const auto ratio = static_cast<float>(random_.ratio);
  for (int64_t i = 0; i < count; ++i) {
    float* row = out.Rows(i).data;
    if (eps != 0 || ratio != 1) {
      for (int64_t j = 0; j < random; ++j) row[j] = (row[j] + eps) * ratio;
    }
    if (random_.constant) row[random] = static_cast<float>(*random_.constant);
  }
}

void BlockFeatures::Exponentiate(const RowBlock& rows, int64_t count, const RowBlock& out) const {
  const int64_t directions = directions_.size(1);
  const auto half = static_cast<float>(random_.scale * random_.scale / 2);
  std::array<float, kBlockRows> offsets{};
  for (int64_t i = 0; i < count; ++i) {
    AddDots(rows.Rows(i), 1, width_, rows.Rows(i).data, &offsets[static_cast<size_t>(i)]);
    offsets[static_cast<size_t>(i)] *= half;
  }
  const bool mirrored = random_.map == RandomFeatures::Map::kMirrored;
  ExpOffsets(out, count, directions, offsets.data(),
             mirrored ? out.Columns(directions).data : nullptr);
}

void BlockFeatures::TakeCosines(int64_t count, const RowBlock& out) const {
  const int64_t directions = directions_.size(1);
  const auto matrix = [&](int64_t column) {
    return at::from_blob(out.Columns(column).data, {count, directions}, {out.stride, 1});
  };
  at::Tensor cosines = matrix(0);
  at::Tensor sines = matrix(directions);
  at::sin_out(sines, cosines);
  cosines.cos_();
}

}  // namespace linserve
