#include "models/network/projected_attention.h"

#include <utility>
#include <vector>

#include "attention/linformer/linformer_attention.h"
#include "attention/linformer/projection_order.h"
#include "attention/linformer/slot_attention.h"
#include "attention/positions/positions.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "models/network/slots_by_blocks.h"

namespace linserve {

ProjectedAttention::ProjectedAttention(const Sizes& sizes, const Names& names,
                                       std::shared_ptr<LengthMatrix> e,
                                       std::shared_ptr<LengthMatrix> f)
    : sizes_(sizes),
      names_(names),
      query_(sizes.dim, sizes.inner(), sizes.biased),
      key_(sizes.dim, sizes.kv_width(), sizes.biased),
      value_(sizes.dim, sizes.kv_width(), sizes.biased),
      out_(sizes.inner(), sizes.dim),
      e_(std::move(e)),
      f_(std::move(f)) {}

void ProjectedAttention::Declare(const Scope& scope) {
  // This needs weights as they were loaded, so it comes before they are packed.
  scope.AfterLoading([this](DType) { FoldBiases(); });
  query_.Declare(scope / names_.query);
  key_.Declare(scope / names_.key);
  e_->Declare(scope, names_.e);
  if (!sizes_.share_kv) {
    value_.Declare(scope / names_.value);
    if (names_.f != nullptr) f_->Declare(scope, names_.f);
  }
  out_.Declare(scope / names_.out);
  scope.AfterLoading([this](DType products) {
    e_->Prepare(products, packed());
    f_->Prepare(products, packed());
    joined_.Join({&query_, &key_, &value_});
  });
}

void ProjectedAttention::FoldBiases() {
  if (!key_.with_bias) return;
  // What is added to all keys adds the same to all scores of a query, which softmax does not see.
  // What is added to all values is added to their mean.
  const at::Tensor bias = at::linear(value_.bias.to(at::kDouble), out_.weight.to(at::kDouble),
                                     out_.bias.to(at::kDouble));
  out_.bias = bias.to(out_.bias.dtype());
  for (Linear* part : {&key_, &value_}) {
    part->with_bias = false;
    part->bias.reset();
  }
}

void ProjectedAttention::AddTo(const at::Tensor& target, const Input& input) const {
  if (packed()) return AddByBlocks(target, input, {});
  out_.AddTo(target, Attended(input));
}

void ProjectedAttention::AddWithoutBias(const at::Tensor& target, const Input& input) const {
  out_.AddProduct(target, Attended(input));
}

at::Tensor ProjectedAttention::Attended(const Input& input) const {
  const at::Tensor normed = input.x.Normed();
  std::vector<at::Tensor> parts;  // queries, keys and, unless they are the keys, values
  if (&input.source.rows == &input.x.rows && !input.source.visible.defined()) {
    parts = joined_(normed);
  } else {
    const at::Tensor rows = input.source.Normed();
    parts = {query_(normed), key_(rows)};
    if (!sizes_.share_kv) parts.push_back(value_(rows));
  }
  if (input.rotation.defined()) {
    Rotate(parts[0], input.layout, sizes_.heads, input.rotation);
    Rotate(parts[1], input.source_layout, sizes_.kv_heads, input.rotation);
  }
  const at::Tensor keys = ProjectLength(parts[1], e_->matrix(), input.source_layout);
  // With share_kv the values are the keys, projected by the same matrix.
  const at::Tensor values =
      sizes_.share_kv ? keys : ProjectLength(parts[2], f_->matrix(), input.source_layout);
  if (!sizes_.causal) return AttendToSlots(parts[0], keys, values, sizes_.heads, input.layout);
  const at::Tensor attended =
      NewRows(input.layout, normed.size(0), sizes_.inner(), normed.options());
  for (const Span& span : Spans(input.layout)) {
    const auto heads = [&](const at::Tensor& slots) {
      return SplitHeads(slots.narrow(0, span.first, span.count), sizes_.heads);
    };
    View(attended, span)
        .copy_(
            AttendToOpenSlots(View(parts[0], span), heads(keys), heads(values), {.causal = true}));
  }
  return attended;
}

void ProjectedAttention::AddByBlocks(const at::Tensor& target, const Input& input,
                                     const BlockStep& then) const {
  BlockSlots slots({e_->slots(), sizes_.heads, sizes_.kv_heads, sizes_.dim_head, sizes_.causal},
                   sizes_.share_kv);
  AttendByBlocks(
      {.layout = input.layout,
       .inner = sizes_.inner(),
       .scratch_elements = kBlockRows * sizes_.dim,
       .project = [&](size_t sequence, BlockSlots& own) { Project(input, sequence, own); },
       .set_queries =
           [&](int64_t row, int64_t place, int64_t count, const RowBlock& out, float* scratch) {
             SetTurned(query_, input, sizes_.heads, place, input.x.Block(row, count, scratch),
                       count, out);
           },
       .take = [&](int64_t row, int64_t count, const RowBlock& attended,
                   float*) { out_.Add(BlockOf(target, row), attended, count); }},
      slots, then);
}

void ProjectedAttention::SetTurned(const Linear& linear, const Input& input, int64_t heads,
                                   int64_t place, const RowBlock& rows, int64_t count,
                                   const RowBlock& out) const {
  linear.Set(out, rows, count);
  if (!input.rotation.defined()) return;
  RotateRows(out, count, heads, sizes_.dim_head, BlockOf(input.rotation, place));
}

void ProjectedAttention::Project(const Input& input, size_t sequence, BlockSlots& slots) const {
  const int64_t start = input.source_layout.starts[sequence];
  const int64_t length = input.source_layout.lengths[sequence];
  const bool shared = sizes_.share_kv;
  const int64_t width = sizes_.kv_width();
  // Keys that are turned are no linear functions of rows.
  if (!input.rotation.defined() && ProjectsLengthFirst({.rows = length,
                                                        .width = sizes_.dim,
                                                        .key_width = width,
                                                        .slots = e_->slots(),
                                                        .maps = shared ? 1 : 2,
                                                        .matrices = f_ == e_ ? 1 : 2})) {
    const auto copy = [&](int64_t row, int64_t count, const RowBlock& out, float*) {
      input.source.Copy(start + row, count, out);
    };
    const auto to_keys = [&](const RowBlock& rows, int64_t count, const RowBlock& out) {
      key_.Set(out, rows, count);
    };
    const auto to_values = [&](const RowBlock& rows, int64_t count, const RowBlock& out) {
      value_.Set(out, rows, count);
    };
    return slots.ProjectSource(length, sizes_.dim, e_->blocks(), f_->blocks(), copy, to_keys,
                               to_values);
  }
  slots.ProjectKeys(length, e_->blocks(), f_->blocks(), kBlockRows * sizes_.dim,
                    [&](int64_t row, int64_t count, const RowBlock& out, float* scratch) {
                      const RowBlock rows = input.source.Block(start + row, count, scratch);
                      SetTurned(key_, input, sizes_.kv_heads, row, rows, count, out);
                      if (!shared) value_.Set(out.Columns(width), rows, count);
                    });
}

double ProjectedAttention::Flops(int64_t queries, int64_t keys) const {
  const int64_t projections = sizes_.share_kv ? 1 : 2;
  const int64_t per_key = projections * (key_.Flops() + 2 * e_->slots() * sizes_.kv_width());
  const int64_t per_query = query_.Flops() + out_.Flops() + 4 * e_->slots() * sizes_.inner();
  return static_cast<double>(per_key) * static_cast<double>(keys) +
         static_cast<double>(per_query) * static_cast<double>(queries);
}

}  // namespace linserve
