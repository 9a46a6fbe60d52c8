#include "attention/rows/positions.h"

#include <algorithm>

#include "attention/rows/aten.h"
#include "attention/rows/scratch.h"

namespace linserve {

at::Tensor Sinusoid(int64_t length, int64_t width, double base) {
  return Sinusoid(at::arange(length, at::kLong), width, base);
}

at::Tensor Sinusoid(const at::Tensor& positions, int64_t width, double base) {
  const at::TensorOptions options = positions.options().dtype(at::kFloat);
  const at::Tensor exponents = at::arange(0, width, 2, options) / static_cast<double>(width);
  const at::Tensor angles =
      at::outer(positions.to(at::kFloat), at::pow(base, exponents).reciprocal());
  return at::cat({angles.sin(), angles.cos()}, -1);
}

at::Tensor PlacesOfTokens(const at::Tensor& ids, int64_t padding) {
  const at::Tensor counted = ids.ne(padding);
  return counted.cumsum(1).mul_(counted).add_(padding);
}

void AddPositions(at::Tensor& rows, const PlacedLayout& layout, const at::Tensor& table) {
  for (const Span& span : Spans(layout)) View(rows, span).add_(table.narrow(0, 0, span.length));
}

void AddAxialPositions(at::Tensor& rows, const PlacedLayout& layout, const at::Tensor& coarse,
                       const at::Tensor& fine) {
  const int64_t width = fine.size(0);
  for (const Span& span : Spans(layout)) {
    const at::Tensor sequence = View(rows, span);
    const int64_t whole = span.length / width;
    const int64_t rest = span.length % width;
    if (whole > 0) {
      sequence.narrow(1, 0, whole * width)
          .unflatten(1, {whole, width})
          .add_(coarse.narrow(0, 0, whole).unsqueeze(1))
          .add_(fine);
    }
    if (rest > 0) {
      sequence.narrow(1, whole * width, rest)
          .add_(coarse.narrow(0, whole, 1))
          .add_(fine.narrow(0, 0, rest));
    }
  }
}

void Rotate(at::Tensor& rows, const PlacedLayout& layout, int64_t heads, const at::Tensor& table) {
  const int64_t pairs = rows.size(1) / heads / 2;
  for (const Span& span : Spans(layout)) {
    const at::Tensor features = View(rows, span).unflatten(-1, {heads, pairs, 2});
    const int64_t most = CountAtOnce(span.count * rows.size(1));
    for (int64_t row = 0; row < span.length; row += most) {
      const int64_t count = std::min(most, span.length - row);
      const at::Tensor turned = features.narrow(1, row, count);
      const at::Tensor angles = table.narrow(0, row, count).to(at::kFloat).unsqueeze(1);
      const at::Tensor sine = angles.narrow(-1, 0, pairs);
      const at::Tensor cosine = angles.narrow(-1, pairs, pairs);
      const at::Tensor first = turned.select(-1, 0).to(at::kFloat);
      const at::Tensor second = turned.select(-1, 1).to(at::kFloat);
      const at::Tensor result = first * cosine - second * sine;
      turned.select(-1, 1).copy_(second * cosine + first * sine);
      turned.select(-1, 0).copy_(result);
    }
  }
}

at::Tensor ByPairs(const at::Tensor& outputs, int64_t heads) {
  return outputs.unflatten(0, {heads, 2, -1}).transpose(1, 2).flatten(0, 2);
}

}  // namespace linserve
