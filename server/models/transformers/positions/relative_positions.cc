#include "models/transformers/positions/relative_positions.h"

#include <tuple>

#include "attention/rows/aten.h"

namespace linserve::transformers {
namespace {

// Returns the buckets of distances, in F32 as the package computes them: in F64 some would begin a
// row earlier.
at::Tensor Buckets(const RelativePositions& positions, const at::Tensor& distances) {
  const int64_t middle = positions.buckets / 2;
  const at::Tensor away = distances.abs();
  const at::Tensor ratio = away.clamp_min(1) / middle;
  const double furthest = static_cast<double>(positions.furthest - 1) / static_cast<double>(middle);
  const at::Tensor most = at::log(at::scalar_tensor(furthest, ratio.options()));
  const at::Tensor shared = at::ceil(at::log(ratio) / most * (middle - 1)) + middle;
  return at::where(away <= middle, distances, (shared * distances.sign()).to(at::kLong));
}

}  // namespace

at::Tensor PlacesByDistance(const RelativePositions& positions, int64_t longest) {
  const at::Tensor distances = at::arange(1 - longest, longest, at::kLong);
  const at::Tensor nearest = positions.buckets > 0 ? Buckets(positions, distances) : distances;
  const at::Tensor places = (nearest + (positions.span - 1)).clamp(0, positions.rows() - 1);
  return std::get<0>(at::cummax(places, 0)).to(at::kInt);
}

}  // namespace linserve::transformers
