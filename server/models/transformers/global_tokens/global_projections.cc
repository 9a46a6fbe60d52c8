#include "models/transformers/global_tokens/global_projections.h"

#include <algorithm>

#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"

namespace linserve::transformers {

GlobalProjections::GlobalProjections(int64_t dim)
    : query_(dim, dim), key_(dim, dim), value_(dim, dim), key_value_(dim, 2 * dim) {}

void GlobalProjections::Declare(const Scope& self) {
  query_.Declare(self / "query_global");
  key_.DeclarePart(self / "key_global");
  value_.DeclarePart(self / "value_global");
  self.AfterLoading([this](DType products) {
    JoinParts(key_value_, {&key_, &value_});
    key_value_.Pack(products);
  });
}

at::Tensor GlobalProjections::Queries(const at::Tensor& rows, const GlobalTokens& tokens) const {
  if (!packed()) return query_(rows.index_select(0, tokens.rows));
  const int64_t dim = rows.size(1);
  const int64_t count = tokens.rows.size(0);
  const auto* row = tokens.rows.const_data_ptr<int64_t>();
  at::Tensor queries = at::empty({count + kFewestKernelRows, dim}, rows.options());
  const int64_t gathered = (kBlockRows + kFewestKernelRows) * dim;
  ForBlocks(count, gathered, [&](int64_t begin, int64_t some, float* scratch) {
    const RowBlock own{scratch, dim};
    for (int64_t i = 0; i < some; ++i) {
      std::copy_n(BlockOf(rows, row[begin + i]).data, dim, own.Rows(i).data);
    }
    query_.Set(BlockOf(queries, begin), own, some);
  });
  return queries;
}

}  // namespace linserve::transformers
