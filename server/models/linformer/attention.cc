#include "models/linformer/attention.h"

#include <algorithm>

#include "attention/blocks/block_product.h"
#include "attention/blocks/block_slots.h"
#include "attention/linformer/linformer_attention.h"
#include "attention/linformer/projection_order.h"
#include "attention/rows/aten.h"

namespace linserve::linformer {
namespace {

int64_t KeyWidth(const AttentionOptions& options) {
  return options.dim_head * (options.one_kv_head ? 1 : options.heads);
}

}  // namespace

AttentionOptions AttentionOptions::From(Params& params) {
  AttentionOptions options;
  options.dim = params.Positive("dim");
  options.seq_len = params.Positive("seq_len");
  options.k = params.Positive("k", 256);
  options.heads = params.Positive("heads", 8);
  // The package asserts this even when dim_head is given.
  if (options.dim % options.heads != 0) {
    params.Fail("dim", "a multiple of heads = " + std::to_string(options.heads));
  }
  options.dim_head = params.Positive("dim_head", options.dim / options.heads);
  options.one_kv_head = params.Flag("one_kv_head", false);
  options.share_kv = params.Flag("share_kv", false);
  params.Ignore("dropout");
  return options;
}

SelfAttention::SelfAttention(const AttentionOptions& options)
    : options_(options),
      to_q_(options.dim, options.dim_head * options.heads, /*biased=*/false),
      to_k_(options.dim, KeyWidth(options), /*biased=*/false),
      to_v_(options.dim, KeyWidth(options), /*biased=*/false),
      to_out_(options.dim_head * options.heads, options.dim) {}

void SelfAttention::Declare(const Scope& scope) {
  to_q_.Declare(scope / "to_q");
  to_k_.Declare(scope / "to_k");
  scope.Declare("proj_k", proj_k_, {options_.seq_len, options_.k}, Init::kNormal);
  if (!options_.share_kv) {
    to_v_.Declare(scope / "to_v");
    scope.Declare("proj_v", proj_v_, {options_.seq_len, options_.k}, Init::kNormal);
  }
  to_out_.Declare(scope / "to_out");
  scope.AfterLoading([this](DType products) { Prepare(products); });
}

void SelfAttention::Prepare(DType products) {
  if (!packed() || packed_k_.defined()) return;
  const auto pack = [&](at::Tensor& projection) {
    LengthWeights packed(projection.t().unsqueeze(0), {}, products);
    projection.reset();
    return packed;
  };
  packed_k_ = pack(proj_k_);
  // With share_kv the values are the keys, projected by the same matrix.
  packed_v_ = options_.share_kv ? packed_k_ : pack(proj_v_);
}

void SelfAttention::AddTo(const at::Tensor& target, const NormedRows& x, const PlacedLayout& layout,
                          const NormedRows& source, const PlacedLayout& source_layout) const {
  if (packed()) return AddByBlocks(target, x, layout, source, source_layout, {});
  const at::Tensor queries = x.Normed();
  const at::Tensor rows = &source.rows == &x.rows ? queries : source.Normed();
  const at::Tensor keys = ProjectLength(to_k_(rows), proj_k_, source_layout);
  // With share_kv the values are the keys, projected by the same matrix.
  const at::Tensor values =
      options_.share_kv ? keys : ProjectLength(to_v_(rows), proj_v_, source_layout);
  target.add_(to_out_(AttendToSlots(to_q_(queries), keys, values, options_.heads, layout)));
}

void SelfAttention::AddByBlocks(const at::Tensor& target, const NormedRows& x,
                                const PlacedLayout& layout, const NormedRows& source,
                                const PlacedLayout& source_layout, const BlockStep& then) const {
  const int64_t inner = options_.heads * options_.dim_head;
  const int64_t block = kBlockRows * options_.dim;  // elements
  BlockSlots slots(
      {options_.k, options_.heads, KeyWidth(options_) / options_.dim_head, options_.dim_head},
      options_.share_kv);
  const int64_t own_scratch = block + 2 * kBlockRows * inner + slots.ScratchElements();
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    Project(source, source_layout.starts[i], source_layout.lengths[i], slots);
    ForSlicedBlocks(layout.lengths[i], std::max(own_scratch, then.scratch_elements),
                    [&](int64_t begin, int64_t count, float* scratch) {
                      const int64_t row = layout.starts[i] + begin;
                      const RowBlock queries{scratch + block, inner};
                      const RowBlock attended = queries.Rows(kBlockRows);
                      to_q_.Set(queries, x.Block(row, count, scratch), count);
                      slots.Attend(queries, begin, count, attended, attended.Rows(kBlockRows).data);
                      to_out_.Add(BlockOf(target, row), attended, count);
                      if (then.apply) then.apply(row, count, scratch);
                    });
  }
}

void SelfAttention::Project(const NormedRows& source, int64_t start, int64_t length,
                            BlockSlots& slots) const {
  const bool shared = options_.share_kv;
  const int64_t width = KeyWidth(options_);
  const int64_t distinct = shared ? 1 : 2;
  if (ProjectsLengthFirst({.rows = length,
                           .width = options_.dim,
                           .key_width = width,
                           .slots = options_.k,
                           .maps = distinct,
                           .matrices = distinct})) {
    const auto copy = [&](int64_t row, int64_t count, const RowBlock& out, float*) {
      source.Copy(start + row, count, out);
    };
    const auto to_keys = [&](const RowBlock& rows, int64_t count, const RowBlock& out) {
      to_k_.Set(out, rows, count);
    };
    const auto to_values = [&](const RowBlock& rows, int64_t count, const RowBlock& out) {
      to_v_.Set(out, rows, count);
    };
    return slots.ProjectSource(length, options_.dim, packed_k_, packed_v_, copy, to_keys,
                               to_values);
  }
  slots.ProjectKeys(length, packed_k_, packed_v_, kBlockRows * options_.dim,
                    [&](int64_t row, int64_t count, const RowBlock& out, float* scratch) {
                      const RowBlock rows = source.Block(start + row, count, scratch);
                      to_k_.Set(out, rows, count);
                      if (!shared) to_v_.Set(out.Columns(width), rows, count);
                    });
}

double SelfAttention::Flops(int64_t queries, int64_t keys) const {
  const int64_t projections = options_.share_kv ? 1 : 2;
  const int64_t per_key = projections * (to_k_.Flops() + 2 * options_.k * KeyWidth(options_));
  const int64_t per_query =
      to_q_.Flops() + to_out_.Flops() + 4 * options_.k * options_.heads * options_.dim_head;
  return static_cast<double>(per_key) * static_cast<double>(keys) +
         static_cast<double>(per_query) * static_cast<double>(queries);
}

}  // namespace linserve::linformer
