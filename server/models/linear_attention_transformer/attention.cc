#include "models/linear_attention_transformer/attention.h"

#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/linear/causal_linear_attention.h"
#include "attention/linear/linear_attention.h"
#include "attention/local/axial_fold.h"
#include "attention/local/local_attention.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"

namespace linserve::linear_attention_transformer {
namespace {

// Returns each sequence as a span of its own.
std::vector<Span> Apart(const std::vector<Span>& spans) {
  std::vector<Span> apart;
  for (const Span& span : spans) {
    for (int64_t i = 0; i < span.count; ++i) {
      apart.push_back({span.first + i, 1, span.start + i * span.stride, span.length, span.stride});
    }
  }
  return apart;
}

}  // namespace

Attention::Attention(const AttentionOptions& options)
    : options_(options),
      to_q_(options.dim, options.heads * options.dim_head, /*biased=*/false),
      to_k_(options.dim, options.heads * options.dim_head, /*biased=*/false),
      to_v_(options.dim, options.heads * options.dim_head, /*biased=*/false),
      to_out_(options.heads * options.dim_head, options.dim) {}

void Attention::Declare(const Scope& scope) {
  to_q_.Declare(scope / "to_q");
  to_k_.Declare(scope / "to_k");
  to_v_.Declare(scope / "to_v");
  to_out_.Declare(scope / "to_out");
  scope.AfterLoading([this](DType products) {
    qkv_.Join({&to_q_, &to_k_, &to_v_});
    if (options_.local_heads == 0) return;
    local_ = BlockLocalAttention({.heads = options_.local_heads,
                                  .dim_head = options_.dim_head,
                                  .window = options_.window,
                                  .causal = options_.causal,
                                  .products = products});
  });
}

at::Tensor Attention::Forward(const at::Tensor& x, const PlacedLayout& layout,
                              const at::Tensor& source, const MaskedLayout& source_layout,
                              const at::Tensor& rotary) const {
  std::vector<at::Tensor> qkv =
      source.is_same(x) ? qkv_(x) : std::vector{to_q_(x), to_k_(source), to_v_(source)};
  at::Tensor& queries = qkv[0];
  at::Tensor& keys = qkv[1];
  const at::Tensor& values = qkv[2];
  if (rotary.defined()) {
    Rotate(queries, layout, options_.heads, rotary);
    Rotate(keys, source_layout.layout, options_.heads, rotary);
  }
  at::Tensor attended = NewRows(layout, queries.size(0), queries.size(1), queries.options());
  const bool global_is_done = AttendGloballyOnDevice(
      {queries, keys, values, source_layout.mask, attended}, layout, source_layout.layout);
  if (global_is_done && options_.local_heads == 0) return to_out_(attended);
  CheckNotRecording(layout);
  // Whether there is a mask matters where rows outside are seen.
  const bool apart = options_.outside_is_seen && !source_layout.padded.empty();
  SpanPairs spans = Spans(layout, source_layout.layout);
  if (apart) spans = {Apart(spans.first), Apart(spans.second)};
  for (size_t i = 0; i < spans.first.size(); ++i) {
    const Span& own = spans.first[i];
    const Span& other = spans.second[i];
    const bool masked = !apart || source_layout.padded[static_cast<size_t>(other.first)];
    at::Tensor mask;
    if (source_layout.mask.defined() && masked) mask = View(source_layout.mask, other);
    const Operands operands{View(queries, own), View(keys, other), View(values, other), mask,
                            View(attended, own)};
    if (options_.axial_width > 0) {
      AttendAxially(operands);
    } else {
      Attend(operands, global_is_done);
    }
  }
  return to_out_(attended);
}

bool Attention::AttendGloballyOnDevice(const Operands& rows, const PlacedLayout& layout,
                                       const PlacedLayout& source_layout) const {
  const auto kernel = KernelsFor(rows.queries).linear_attention;
  const int64_t heads = options_.heads - options_.local_heads;
  if (kernel == nullptr || !layout.table || !source_layout.table) return false;
  if (options_.axial_width > 0 || heads == 0) return false;
  const auto global = [&](const at::Tensor& x) {
    return x.narrow(1, options_.local_heads * options_.dim_head, heads * options_.dim_head);
  };
  std::optional<double> floor;
  if (options_.causal) floor = kCausalFloor;
  return kernel({.queries = global(rows.queries),
                 .keys = global(rows.keys),
                 .values = global(rows.values),
                 .mask = rows.mask,
                 .heads = heads,
                 .layout = *layout.table,
                 .key_layout = *source_layout.table,
                 .elu = false,
                 .causal = options_.causal,
                 .bucket = options_.bucket,
                 .floor = floor},
                global(rows.out));
}

void Attention::Attend(const Operands& rows, bool global_is_done) const {
  const auto split = [&](const at::Tensor& x) {
    return x.unflatten(-1, {options_.heads, options_.dim_head}).transpose(-3, -2);
  };
  const Operands all{split(rows.queries), split(rows.keys), split(rows.values),
                     rows.mask.defined() ? rows.mask.unsqueeze(-2) : at::Tensor(), split(rows.out)};
  const auto heads = [&](int64_t first, int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(-3, first, count); };
    return Operands{part(all.queries), part(all.keys), part(all.values), all.mask, part(all.out)};
  };
  const int64_t local = options_.local_heads;
  if (local > 0) {
    const Operands few = heads(0, local);
    // Other lengths are as if padded to whole windows, which takes a mask.
    const bool outside_is_seen = options_.outside_is_seen && !few.mask.defined() &&
                                 few.queries.size(-2) % options_.window == 0;
    LocalAttention(few.queries, few.keys, few.values, few.mask, options_.window, options_.causal,
                   few.out, outside_is_seen);
  }
  if (local < options_.heads && !global_is_done)
    AttendGlobally(heads(local, options_.heads - local));
}

void Attention::AttendGlobally(const Operands& heads) const {
  if (options_.causal) {
    CausalState state;
    CausalLinearAttention(heads.queries, heads.keys, heads.values, heads.mask, options_.bucket,
                          state, heads.out);
  } else {
    LinearAttention(heads.queries, heads.keys, heads.values, heads.mask, heads.out);
  }
}

void Attention::AttendAxially(const Operands& rows) const {
  for (const AxialColumns& columns : ColumnsOf(rows.queries.size(1), options_.axial_width)) {
    const auto fold = [&](const at::Tensor& x) { return Fold(x, options_.axial_width, columns); };
    Attend({fold(rows.queries), fold(rows.keys), fold(rows.values),
            rows.mask.defined() ? fold(rows.mask) : at::Tensor(), fold(rows.out)},
           /*global_is_done=*/false);
  }
}

double Attention::Flops(int64_t queries, int64_t keys) const {
  const int64_t local_width = options_.local_heads * options_.dim_head;
  const int64_t global_width = options_.heads * options_.dim_head - local_width;
  // Each key adds to Σ k vᵀ and, causal, to Σ k; each query is multiplied by these sums.
  const double per_row = 2 * static_cast<double>(global_width) *
                         static_cast<double>(options_.dim_head + (options_.causal ? 1 : 0));
  const double per_query = static_cast<double>(to_q_.Flops() + to_out_.Flops()) + per_row;
  const double per_key = static_cast<double>(to_k_.Flops() + to_v_.Flops()) + per_row;
  double flops = static_cast<double>(queries) * per_query + static_cast<double>(keys) * per_key;
  if (local_width > 0) {
    flops += 4 * static_cast<double>(local_width) *
             LocalAttentionPairs(queries, options_.window, options_.causal);
  }
  return flops;
}

}  // namespace linserve::linear_attention_transformer
