#include "models/transformers/embeddings.h"

#include "attention/positions/positions.h"
#include "attention/rows/aten.h"
#include "models/transformers/declare_norm.h"
#include "models/transformers/names.h"

namespace linserve::transformers {

Embeddings::Embeddings(const Options& options)
    : options_(options), norm_(options.dim, options.eps, options.norm_bias) {}

void Embeddings::Declare(const Scope& scope) {
  const Names& names = NamesOf(options_.family);
  const auto table = [&](const char* name, at::Tensor& slot, int64_t rows) {
    if (rows > 0) (scope / name).Declare("weight", slot, {rows, options_.dim}, Init::kNormal);
  };
  table(names.words, words_, options_.vocabulary);
  table(names.positions, positions_, options_.positions);
  table(names.types, types_, options_.types);
  DeclareNorm(scope / names.embedding_norm, norm_);
}

at::Tensor Embeddings::operator()(const at::Tensor& ids, const at::Tensor& types,
                                  const PlacedLayout& layout) const {
  at::Tensor rows = at::embedding(words_, ids);
  if (types_.defined()) {
    rows.add_(types.defined() ? at::embedding(types_, types) : types_.select(0, 0));
  }
  if (positions_.defined()) AddPositionsOf(rows, ids, layout);
  return norm_(rows);
}

void Embeddings::AddPositionsOf(at::Tensor& rows, const at::Tensor& ids,
                                const PlacedLayout& layout) const {
  const int64_t before = options_.first_position();
  const at::Tensor table = positions_.narrow(0, before, positions_.size(0) - before);
  if (options_.padding < 0) return AddPositions(rows, layout, table);
  for (const Span& span : Spans(layout)) {
    const at::Tensor places = PlacesOfTokens(View(ids, span), options_.padding);
    View(rows, span).add_(at::embedding(positions_, places));
  }
}

}  // namespace linserve::transformers
