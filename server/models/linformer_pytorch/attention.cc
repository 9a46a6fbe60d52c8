#include "models/linformer_pytorch/attention.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "attention/linformer/projection_order.h"
#include "attention/linformer/slot_attention.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"

namespace linserve::linformer_pytorch {
namespace {

// So many elements of projected keys exist at once, but those of one sequence at least: 64 MiB in
// F32.
constexpr int64_t kSlotElements = int64_t{16} << 20;

at::Tensor NarrowIfDefined(const at::Tensor& mask, int64_t begin, int64_t rows) {
  return mask.defined() ? mask.narrow(0, begin, rows) : mask;
}

at::Tensor NarrowIfDefined(const at::Tensor& mask, const LayoutSlice& slice) {
  return NarrowIfDefined(mask, slice.begin, slice.rows);
}

// Gives [sequences, heads, slots, width] of the span's sequences and these heads.
at::Tensor SlotsOf(const at::Tensor& slots, const Span& span, int64_t head, int64_t heads) {
  return slots.narrow(0, span.first, span.count).narrow(1, head, heads);
}

}  // namespace

AttentionInput AttentionInput::OfSequences(int64_t first, int64_t count) const {
  LayoutPart part = PartOf(query_layout, first, count);
  LayoutPart source_part = PartOf(source_layout, first, count);
  const int64_t rows = part.layout.rows;
  const int64_t source_rows = source_part.layout.rows;
  return {queries.narrow(0, part.begin, rows),
          std::move(part.layout),
          source.narrow(0, source_part.begin, source_rows),
          std::move(source_part.layout),
          NarrowIfDefined(hidden_queries, part.begin, rows),
          NarrowIfDefined(hidden_source, source_part.begin, source_rows)};
}

MultiHeadAttention::MultiHeadAttention(const HeadOptions& options,
                                       std::shared_ptr<LengthProjection> shared)
    : options_(options),
      owns_projections_(shared == nullptr),
      e_(shared ? std::move(shared) : std::make_shared<LengthProjection>(options)),
      f_(e_),
      query_weights_(options.heads),
      key_weights_(options.heads),
      value_weights_(options.heads),
      w_o_(options.inner(), options.output_inner.value_or(options.width)) {
  if (options.sharing == ParameterSharing::kNone ||
      options.sharing == ParameterSharing::kHeadwise) {
    f_ = std::make_shared<LengthProjection>(options);
  }
  if (options.output_inner) w_o_2_.emplace(*options.output_inner, options.width);
}

void MultiHeadAttention::Declare(const Scope& scope) {
  e_->Declare(scope, "E");
  f_->Declare(scope, "F");
  const std::vector<int64_t> shape = {options_.dim_head, options_.width};
  for (int64_t head = 0; head < options_.heads; ++head) {
    (scope / "to_q" / head).Declare("weight", query_weights_.slot(head), shape, Init::kUniform);
    (scope / "to_k" / head).Declare("weight", key_weights_.slot(head), shape, Init::kUniform);
    (scope / "to_v" / head).Declare("weight", value_weights_.slot(head), shape, Init::kUniform);
    if (!WillPack()) continue;
    for (HeadTensors* weights : {&query_weights_, &key_weights_, &value_weights_}) {
      scope.Packs(weights->slot(head));
    }
  }
  w_o_.Declare(scope / (w_o_2_ ? "w_o_1" : "w_o"));
  if (w_o_2_) w_o_2_->Declare(scope / "w_o_2");
  scope.AfterLoading([this](DType products) { Prepare(products); });
}

void MultiHeadAttention::Prepare(DType products) {
  to_q_ = query_weights_.TakeStacked().flatten(0, 1);
  to_k_ = key_weights_.TakeStacked().flatten(0, 1);
  to_v_ = value_weights_.TakeStacked().flatten(0, 1);
  if (!WillPack() || !w_o_.packed) return;
  e_->Pack(products);
  f_->Pack(products);
  packed_q_ = PackedWeight(to_q_, products);
  packed_k_ = PackedWeight(to_k_, products);
  packed_v_ = PackedWeight(to_v_, products);
  for (at::Tensor* weight : {&to_q_, &to_k_, &to_v_}) weight->reset();
}

double MultiHeadAttention::Flops(int64_t queries, int64_t keys) const {
  const int64_t inner = options_.inner();
  const int64_t slots = options_.full_attention ? keys : e_->slots();
  const int64_t output = w_o_.Flops() + (w_o_2_ ? w_o_2_->Flops() : 0);
  const int64_t per_query = 2 * options_.width * inner + 4 * slots * inner + output;
  const double projections = options_.full_attention ? 0.0 : e_->Flops(keys) + f_->Flops(keys);
  return static_cast<double>(per_query) * static_cast<double>(queries) + projections +
         4.0 * static_cast<double>(options_.width * inner) * static_cast<double>(keys);
}

int64_t MultiHeadAttention::OwnMatrices() const {
  if (!owns_projections_) return 0;
  return e_->matrices() + (f_ == e_ ? 0 : f_->matrices());
}

void MultiHeadAttention::Forward(const AttentionInput& input, const LayerScratch& scratch,
                                 const Sink& sink) const {
  if (options_.full_attention) return AttendToRows(input, scratch, sink);
  if (WorksByBlocks()) {
    const at::Tensor result = at::zeros_like(input.queries);
    AddByBlocks(result, input, {});
    return sink(0, result);
  }
  // A batch of short sequences has far more slots than rows.
  const int64_t at_once = std::max<int64_t>(1, kSlotElements / (e_->slots() * options_.inner()));
  for (int64_t first = 0; first < input.sequences(); first += at_once) {
    const int64_t count = std::min(at_once, input.sequences() - first);
    const int64_t begin = input.query_layout.starts[static_cast<size_t>(first)];
    AttendToSlots(input.OfSequences(first, count), scratch,
                  [&](int64_t row, const at::Tensor& rows) { sink(begin + row, rows); });
  }
}

std::vector<MultiHeadAttention::Heads> MultiHeadAttention::Groups(
    const LayerScratch& scratch) const {
  if (!scratch.by_head) return {{0, options_.heads}};
  std::vector<Heads> groups;
  for (int64_t head = 0; head < options_.heads; ++head) groups.push_back({head, 1});
  return groups;
}

at::Tensor MultiHeadAttention::Project(const at::Tensor& rows, const at::Tensor& weight,
                                       const Heads& heads, const at::Tensor& hidden) const {
  const int64_t width = options_.dim_head;
  at::Tensor projected =
      at::linear(rows, weight.narrow(0, heads.first * width, heads.count * width), {});
  if (hidden.defined()) projected.masked_fill_(hidden, 0);
  return projected;
}

bool MultiHeadAttention::LengthFirst(int64_t sequences, int64_t rows) const {
  return e_->CommutesWithWidth() && ProjectsLengthFirst({.sequences = sequences,
                                                         .rows = rows,
                                                         .width = options_.width,
                                                         .key_width = options_.inner(),
                                                         .slots = e_->slots(),
                                                         .matrices = f_ == e_ ? 1 : 2});
}

MultiHeadAttention::Slots MultiHeadAttention::ProjectRows(const AttentionInput& input,
                                                          const LayerScratch& scratch) const {
  Slots sums;
  sums.keys = at::zeros({input.sequences(), options_.heads, e_->slots(), options_.dim_head},
                        input.source.options().dtype(at::kFloat));
  sums.values = at::zeros_like(sums.keys);
  const auto add = [&](const at::Tensor& rows, const LengthProjection& projection, at::Tensor& to,
                       const LayoutSlice& slice, const Heads& heads) {
    for (const SliceSpan& span : slice.spans) {
      at::Tensor own = SlotsOf(to, span, heads.first, heads.count);
      projection.Add(View(rows, span), span.offset, heads.first, own);
    }
  };
  for (const LayoutSlice& slice : LayoutSlices(input.source_layout, scratch.rows, e_->multiple())) {
    const at::Tensor rows = input.source.narrow(0, slice.begin, slice.rows);
    const at::Tensor hidden = NarrowIfDefined(input.hidden_source, slice);
    for (const Heads& heads : Groups(scratch)) {
      add(Project(rows, to_k_, heads, hidden), *e_, sums.keys, slice, heads);
      add(Project(rows, to_v_, heads, hidden), *f_, sums.values, slice, heads);
    }
    RowsRead(slice.rows);
  }
  return sums;
}

MultiHeadAttention::Slots MultiHeadAttention::ProjectLengthFirst(
    const AttentionInput& input, const LayerScratch& scratch) const {
  const auto zeros = [&] {
    return at::zeros({input.sequences(), 1, e_->slots(), options_.width},
                     input.source.options().dtype(at::kFloat));
  };
  at::Tensor by_e = zeros();
  at::Tensor by_f = f_ == e_ ? by_e : zeros();
  for (const LayoutSlice& slice : LayoutSlices(input.source_layout, scratch.rows)) {
    at::Tensor rows = input.source.narrow(0, slice.begin, slice.rows);
    // to_k and to_v have no bias: a row of zeros gives zeros.
    const at::Tensor hidden = NarrowIfDefined(input.hidden_source, slice);
    if (hidden.defined()) rows = rows.masked_fill(hidden, 0);
    for (const SliceSpan& span : slice.spans) {
      const at::Tensor own = View(rows, span);
      at::Tensor sums = SlotsOf(by_e, span, 0, 1);
      e_->Add(own, span.offset, 0, sums);
      if (f_ == e_) continue;
      sums = SlotsOf(by_f, span, 0, 1);
      f_->Add(own, span.offset, 0, sums);
    }
    RowsRead(slice.rows);
  }
  const auto by_width = [&](const at::Tensor& sums, const at::Tensor& weight) {
    return SplitHeads(at::linear(sums.squeeze(1).to(weight.dtype()), weight, {}), options_.heads);
  };
  return {by_width(by_e, to_k_), by_width(by_f, to_v_)};
}

void MultiHeadAttention::AttendToSlots(const AttentionInput& input, const LayerScratch& scratch,
                                       const Sink& sink) const {
  const std::vector<int64_t>& lengths = input.source_layout.lengths;
  const int64_t rows_to_project = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  Slots slots = LengthFirst(input.sequences(), rows_to_project) ? ProjectLengthFirst(input, scratch)
                                                                : ProjectRows(input, scratch);
  e_->AddBias(slots.keys);
  f_->AddBias(slots.values);
  slots.keys = slots.keys.to(input.queries.dtype()).contiguous();
  slots.values = slots.values.to(input.queries.dtype()).contiguous();
  const int64_t width = options_.dim_head;
  for (const LayoutSlice& slice : LayoutSlices(input.query_layout, scratch.rows)) {
    const at::Tensor rows = input.queries.narrow(0, slice.begin, slice.rows);
    const at::Tensor joined =
        NewRows(input.query_layout, slice.rows, options_.inner(), rows.options());
    for (const Heads& heads : Groups(scratch)) {
      const at::Tensor queries =
          Project(rows, to_q_, heads, NarrowIfDefined(input.hidden_queries, slice));
      const at::Tensor results = joined.narrow(1, heads.first * width, heads.count * width);
      for (const SliceSpan& span : slice.spans) {
        View(results, span)
            .copy_(AttendToOpenSlots(View(queries, span),
                                     SlotsOf(slots.keys, span, heads.first, heads.count),
                                     SlotsOf(slots.values, span, heads.first, heads.count),
                                     {options_.causal, span.offset}));
      }
    }
    sink(slice.begin, Output(joined));
    RowsDone(slice.rows);
  }
}

void MultiHeadAttention::AttendToRows(const AttentionInput& input, const LayerScratch& scratch,
                                      const Sink& sink) const {
  const int64_t width = options_.dim_head;
  const at::Tensor joined = NewRows(input.query_layout, input.query_layout.rows, options_.inner(),
                                    input.queries.options());
  const SpanPairs spans = Spans(input.query_layout, input.source_layout);
  for (const Heads& heads : Groups(scratch)) {
    const at::Tensor queries = Project(input.queries, to_q_, heads, input.hidden_queries);
    const at::Tensor keys = Project(input.source, to_k_, heads, input.hidden_source);
    const at::Tensor values = Project(input.source, to_v_, heads, input.hidden_source);
    const at::Tensor results = joined.narrow(1, heads.first * width, heads.count * width);
    for (size_t i = 0; i < spans.first.size(); ++i) {
      const Span& source = spans.second[i];
      View(results, spans.first[i])
          .copy_(AttendToOpenSlots(
              View(queries, spans.first[i]), SplitHeads(View(keys, source), heads.count),
              SplitHeads(View(values, source), heads.count), {options_.causal, 0}));
    }
  }
  for (const LayoutSlice& slice : LayoutSlices(input.query_layout, scratch.rows)) {
    sink(slice.begin, Output(joined.narrow(0, slice.begin, slice.rows)));
  }
}

at::Tensor MultiHeadAttention::Output(const at::Tensor& joined) const {
  const at::Tensor rows = w_o_(joined);
  return w_o_2_ ? (*w_o_2_)(rows) : rows;
}

}  // namespace linserve::linformer_pytorch
