#include "models/fairseq/embeddings.h"

#include <cmath>

#include "attention/positions/positions.h"
#include "attention/rows/aten.h"

namespace linserve::fairseq {
namespace {

// Returns the table of SinusoidalPositionalEmbedding, by its steps: an angle of some hundreds, in
// F32, has other digits if it is computed otherwise.
at::Tensor SinusoidalTable(int64_t rows, int64_t dim) {
  const int64_t pairs = dim / 2;
  const double step = std::log(10000.0) / static_cast<double>(pairs - 1);
  const at::Tensor frequencies = at::arange(pairs, at::kFloat).mul(-step).exp();
  const at::Tensor angles = at::arange(rows, at::kFloat).unsqueeze(1) * frequencies.unsqueeze(0);
  return at::constant_pad_nd(at::cat({angles.sin(), angles.cos()}, 1), {0, dim % 2});
}

}  // namespace

Embeddings::Embeddings(const Options& options)
    : options_(options), norm_(options.dim), map_(options.dim, options.dim, /*biased=*/false) {}

void Embeddings::Declare(const Scope& encoder) {
  const bool multiplied = options_.tied && !options_.features_only;
  if (multiplied) words_.KeepAsLoaded();  // for the logits
  words_.Declare(encoder / "embed_tokens", options_.vocabulary, options_.dim);
  DeclarePositions(encoder / "embed_positions");
  if (options_.embeddings_mapped) map_.Declare(encoder / "quant_noise");
  if (!options_.embeddings_normed) return;
  norm_.Declare(encoder / "layernorm_embedding");
  norm_.Declare(encoder / "emb_layer_norm");  // in older checkpoints
}

void Embeddings::DeclarePositions(const Scope& positions) {
  const int64_t rows = options_.padding + 1 + options_.longest;
  const int64_t dim = options_.dim;
  switch (options_.positions) {
    case Options::Positions::kNone:
      break;
    case Options::Positions::kLearned:
      positions.Declare("weight", positions_, {rows, dim}, Init::kNormal);
      break;
    case Options::Positions::kSinusoidal:
      positions.DeclareBuffer("weights", positions_, {rows, dim},
                              [rows, dim] { return SinusoidalTable(rows, dim); });
      positions.LeavesOut("_float_tensor");
      break;
  }
}

at::Tensor Embeddings::operator()(const at::Tensor& ids, const PlacedLayout& layout) const {
  at::Tensor rows = words_(ids);
  if (options_.embeddings_scaled) rows.mul_(std::sqrt(static_cast<double>(options_.dim)));
  if (positions_.defined()) {
    rows.add_(at::embedding(positions_, PlacesOfTokens(ids, layout, options_.padding)));
  }
  if (options_.embeddings_normed) rows = norm_(rows);
  if (options_.embeddings_mapped) rows = map_(rows);
  return rows.masked_fill_(ids.eq(options_.padding).unsqueeze(1), 0);
}

}  // namespace linserve::fairseq
