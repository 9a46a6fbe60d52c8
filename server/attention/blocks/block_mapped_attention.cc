#include "attention/blocks/block_mapped_attention.h"

#include <algorithm>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve {

BlockMappedAttention::BlockMappedAttention(const BlockFeatures& map,
                                           const BlockFeatureAttention::Sizes& sizes)
    : map_(map),
      sizes_(sizes),
      attention_(sizes),
      sums_(at::empty({attention_.SumElements()}, at::kFloat)) {}

void BlockMappedAttention::Begin() { sums_.zero_(); }

RowBlock BlockMappedAttention::Map(const RowBlock& rows, int64_t count, at::Tensor& memory) const {
  if (!memory.defined() || memory.numel() < count * inner()) {
    memory = at::empty({count * inner()}, at::kFloat);
  }
  const RowBlock features{memory.mutable_data_ptr<float>(), inner()};
  ForBlocks(count, 0, [&](int64_t begin, int64_t some, float*) {
    map_.Set(rows.Rows(begin), some, sizes_.heads, features.Rows(begin));
  });
  return features;
}

void BlockMappedAttention::Add(const RowBlock& keys, const RowBlock& values, int64_t count) {
  const RowBlock features = Map(keys, count, keys_);
  ForSideBySide(0, sizes_.heads, attention_.ScratchElements(), [&](int64_t head, float* scratch) {
    attention_.Add(head, features, values, count, sums_.mutable_data_ptr<float>(), scratch);
  });
}

int64_t BlockMappedAttention::ScratchElements() const {
  return kBlockRows * inner() + attention_.ScratchElements();
}

void BlockMappedAttention::Attend(const RowBlock& queries, int64_t count, const RowBlock& out,
                                  float* scratch) const {
  const RowBlock features{scratch, inner()};
  map_.Set(queries, count, sizes_.heads, features);
  for (int64_t head = 0; head < sizes_.heads; ++head) {
    attention_.Attend(head, features, count, sums_.mutable_data_ptr<float>(), out,
                      features.Rows(kBlockRows).data);
  }
}

void BlockMappedAttention::Attend(const RowBlock& queries, const RowBlock& keys,
                                  const RowBlock& values, int64_t count) {
  const RowBlock of_queries = Map(queries, count, queries_);
  const RowBlock of_keys = Map(keys, count, keys_);
  ForSideBySide(0, sizes_.heads, attention_.ScratchElements(), [&](int64_t head, float* scratch) {
    attention_.AttendCausally(head, of_queries, of_keys, values, count,
                              sums_.mutable_data_ptr<float>(), scratch);
    const int64_t column = head * sizes_.value_width;
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(values.Rows(i).Columns(column).data, sizes_.value_width,
                  queries.Rows(i).Columns(column).data);
    }
  });
}

}  // namespace linserve
