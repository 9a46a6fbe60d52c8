#include "models/transformers/positions/relative_scores.h"

#include <algorithm>

#include "attention/rows/aten.h"
#include "attention/rows/product.h"

namespace linserve::transformers {

RelativeScores::RelativeScores(const RelativePositions& positions, int64_t dim, int64_t heads)
    : positions_(positions),
      heads_(heads),
      key_(dim, dim, positions.biased_keys),
      query_(dim, dim) {}

void RelativeScores::Declare(const Scope& key, const Scope& query) {
  if (!defined() || positions_.shared) return;
  if (positions_.of_queries) key_.DeclareUnpacked(key);
  if (positions_.of_keys) query_.DeclareUnpacked(query);
}

void RelativeScores::Prepare(const at::Tensor& table, const Linear& query, const Linear& key,
                             bool rounded) {
  if (!defined()) return;
  const at::Tensor reverse = table.flip(0);
  const auto projected = [&](bool there, const Linear& own, Linear& apart) {
    const at::Tensor positions = there ? (positions_.shared ? own : apart)(reverse) : at::Tensor();
    apart.weight.reset();
    apart.bias.reset();
    return positions;
  };
  const at::Tensor keys = projected(positions_.of_queries, key, key_);
  const at::Tensor queries = projected(positions_.of_keys, query, query_);
  const int64_t dim_head = table.size(1) / heads_;
  if (table.is_cpu() && table.scalar_type() == at::kFloat) {
    blocks_ = BlockRelativeScores(keys, queries, dim_head, rounded);
    return;
  }
  const auto by_heads = [&](const at::Tensor& rows) {
    return rows.defined() ? rows.view({-1, heads_, dim_head}).transpose(0, 1).contiguous() : rows;
  };
  as_keys_ = by_heads(keys);
  as_queries_ = by_heads(queries);
}

at::Tensor RelativeScores::operator()(const at::Tensor& queries, const at::Tensor& keys,
                                      const at::Tensor& places, int64_t first) const {
  const int64_t length = keys.size(2);
  const at::Tensor rows = at::arange(length, places.options().dtype(at::kLong));
  const at::Tensor asked = rows.narrow(0, first, queries.size(2)).unsqueeze(1);
  const at::Tensor met =
      places.to(at::kLong).index_select(0, (rows - asked + places.size(0) / 2).flatten());
  const at::Tensor place = met.view({queries.size(2), length});
  at::Tensor scores;
  if (as_keys_.defined()) {
    scores = Product(queries, as_keys_.transpose(1, 2))
                 .gather(-1, place.expand({queries.size(0), heads_, -1, -1}));
  }
  if (as_queries_.defined()) {
    const at::Tensor of_keys = Product(keys, as_queries_.transpose(1, 2))
                                   .gather(-1, place.t().expand({queries.size(0), heads_, -1, -1}))
                                   .transpose(2, 3);
    scores = scores.defined() ? scores + of_keys : of_keys;
  }
  return scores;
}

double RelativeScores::Flops(int64_t length) const {
  if (!defined()) return 0;
  const double met = 2 * static_cast<double>(std::min(length, positions_.rows()));
  const int terms = (positions_.of_queries ? 1 : 0) + (positions_.of_keys ? 1 : 0);
  return terms * met * static_cast<double>(key_.inputs);
}

}  // namespace linserve::transformers
