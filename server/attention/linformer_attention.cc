#include "attention/linformer_attention.h"

#include <algorithm>
#include <cmath>

#include "attention/aten.h"
#include "attention/attention_rows.h"
#include "attention/softmax_attention.h"

namespace linserve {
namespace {

int64_t Count(const AxisLayout& layout) { return static_cast<int64_t>(layout.lengths.size()); }

// queries [batch, rows, heads, dim_head], keys and values [batch, slots, kv_heads, dim_head].
at::Tensor Attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(queries.size(-1)));
  at::Tensor scores = at::matmul(queries.transpose(1, 2) * scale, keys.permute({0, 2, 3, 1}));
  return at::matmul(at::softmax(scores, -1), values.transpose(1, 2)).transpose(1, 2);
}

}  // namespace

at::Tensor ProjectLength(const at::Tensor& rows, const at::Tensor& projection,
                         const AxisLayout& layout) {
  if (layout.padded_length > 0) {
    const int64_t length = layout.padded_length;
    for (size_t i = 0; i < layout.starts.size(); ++i) {
      const int64_t end = layout.starts[i] + layout.lengths[i];
      rows.narrow(0, end, length - layout.lengths[i]).zero_();
    }
    return at::matmul(projection.narrow(0, 0, length).t(),
                      rows.view({Count(layout), length, rows.size(1)}));
  }
  at::Tensor result = at::empty({Count(layout), projection.size(1), rows.size(1)}, rows.options());
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    at::Tensor target = result.select(0, static_cast<int64_t>(i));
    at::mm_out(target, projection.narrow(0, 0, layout.lengths[i]).t(),
               rows.narrow(0, layout.starts[i], layout.lengths[i]));
  }
  return result;
}

at::Tensor AttendToSlots(const at::Tensor& queries, const at::Tensor& keys,
                         const at::Tensor& values, int64_t heads, const AxisLayout& layout) {
  constexpr int64_t kRows = 4096;  // bounds the scores, [heads, rows, slots]
  const int64_t dim_head = queries.size(1) / heads;
  const int64_t slots = keys.size(1);
  const auto by_head = [&](const at::Tensor& slots_of) {
    return slots_of.view({slots_of.size(0), slots, slots_of.size(2) / dim_head, dim_head});
  };
  const at::Tensor key_heads = by_head(keys);
  const at::Tensor value_heads = by_head(values);
  if (layout.padded_length > 0 && layout.rows <= kRows) {
    return Attend(queries.view({Count(layout), layout.padded_length, heads, dim_head}), key_heads,
                  value_heads)
        .reshape({layout.rows, heads * dim_head});
  }
  // Padded rows that no sequence owns stay zero: nothing reads them, but they must be finite.
  at::Tensor result = layout.padded_length > 0 ? at::zeros_like(queries) : at::empty_like(queries);
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    const at::Tensor key = key_heads.narrow(0, static_cast<int64_t>(i), 1);
    const at::Tensor value = value_heads.narrow(0, static_cast<int64_t>(i), 1);
    for (int64_t row = 0; row < layout.lengths[i]; row += kRows) {
      const int64_t count = std::min(kRows, layout.lengths[i] - row);
      const int64_t start = layout.starts[i] + row;
      const at::Tensor query = queries.narrow(0, start, count).view({1, count, heads, dim_head});
      result.narrow(0, start, count)
          .copy_(Attend(query, key, value).reshape({count, heads * dim_head}));
    }
  }
  return result;
}

at::Tensor LinformerAttention(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const at::Tensor& k_projection,
                              const at::Tensor& v_projection, const Visible& visible) {
  const at::ScalarType type = SumType(query);
  const auto project = [&](const at::Tensor& projection, const at::Tensor& rows) {
    const at::Tensor mask = MaskRows(visible.mask, 0, rows.size(-2));
    return at::matmul(projection.to(type), Hidden(rows.to(type), mask, 0));
  };
  at::Tensor result = EmptyResult(query, value);
  Store(result, SoftmaxAttention(query.to(type), project(k_projection, key),
                                 project(v_projection, value), {.causal = visible.causal}));
  return result;
}

}  // namespace linserve
