#include "models/linformer_pytorch_attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/aten.h"
#include "attention/slices.h"
#include "attention/slot_attention.h"

namespace linserve::linformer_pytorch {
namespace {

// Elements of projected keys that exist at once, but of one sequence at least: 64 MiB in F32.
constexpr int64_t kSlotElements = int64_t{16} << 20;

at::Tensor NarrowIfDefined(const at::Tensor& mask, int64_t begin, int64_t rows) {
  return mask.defined() ? mask.narrow(0, begin, rows) : mask;
}

at::Tensor NarrowIfDefined(const at::Tensor& mask, const RowRun& run) {
  return NarrowIfDefined(mask, run.begin, run.rows);
}

// [sequences, heads, slots, width] of the piece's sequences and these heads.
at::Tensor Part(const at::Tensor& slots, const RunPiece& piece, int64_t head, int64_t heads) {
  return slots.narrow(0, piece.span.first, piece.span.count).narrow(1, head, heads);
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
  }
  w_o_.Declare(scope / (w_o_2_ ? "w_o_1" : "w_o"));
  if (w_o_2_) w_o_2_->Declare(scope / "w_o_2");
}

void MultiHeadAttention::Prepare() {
  e_->Prepare();
  f_->Prepare();
  to_q_ = query_weights_.TakeStacked().flatten(0, 1);
  to_k_ = key_weights_.TakeStacked().flatten(0, 1);
  to_v_ = value_weights_.TakeStacked().flatten(0, 1);
  if (options_.full_attention || e_->is_convolution() || !w_o_.packed) return;
  e_->Pack();
  f_->Pack();
  packed_q_ = PackedWeight(to_q_);
  packed_k_ = PackedWeight(to_k_);
  packed_v_ = PackedWeight(to_v_);
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
      at::linear(rows, weight.narrow(0, heads.first * width, heads.count * width));
  if (hidden.defined()) projected.masked_fill_(hidden, 0);
  return projected;
}

// E·(x·Wᵀ) and (E·x)·Wᵀ are the same where all heads share E. The second costs a product of width
// by width for each slot and none for each row; with E = F it is even one of the length and not
// two.
bool MultiHeadAttention::ProjectsLengthFirst(const AxisLayout& source) const {
  if (!e_->CommutesWithWidth()) return false;
  double rows = 0;
  for (int64_t length : source.lengths) rows += static_cast<double>(length);
  const auto sequences = static_cast<double>(source.lengths.size());
  const auto slots = static_cast<double>(e_->slots());
  const auto width = static_cast<double>(options_.width);
  const auto inner = static_cast<double>(options_.inner());
  const double products = f_ == e_ ? 1 : 2;
  const double length_first =
      products * rows * slots * width + 2 * sequences * slots * width * inner;
  return length_first < 2 * rows * inner * (width + slots);
}

MultiHeadAttention::Slots MultiHeadAttention::ProjectRows(const AttentionInput& input,
                                                          const LayerScratch& scratch) const {
  Slots sums;
  sums.keys = at::zeros({input.sequences(), options_.heads, e_->slots(), options_.dim_head},
                        input.source.options().dtype(at::kFloat));
  sums.values = at::zeros_like(sums.keys);
  const auto add = [&](const at::Tensor& rows, const LengthProjection& projection, at::Tensor& to,
                       const RowRun& run, const Heads& heads) {
    for (const RunPiece& piece : run.pieces) {
      at::Tensor part = Part(to, piece, heads.first, heads.count);
      projection.Add(View(rows, piece.span), piece.offset, heads.first, part);
    }
  };
  for (const RowRun& run : RowRuns(input.source_layout, scratch.rows, e_->multiple())) {
    const at::Tensor rows = input.source.narrow(0, run.begin, run.rows);
    const at::Tensor hidden = NarrowIfDefined(input.hidden_source, run);
    for (const Heads& heads : Groups(scratch)) {
      add(Project(rows, to_k_, heads, hidden), *e_, sums.keys, run, heads);
      add(Project(rows, to_v_, heads, hidden), *f_, sums.values, run, heads);
    }
    RowsRead(run.rows);
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
  for (const RowRun& run : RowRuns(input.source_layout, scratch.rows)) {
    at::Tensor rows = input.source.narrow(0, run.begin, run.rows);
    // to_k and to_v have no bias: a row of zeros gives zeros.
    const at::Tensor hidden = NarrowIfDefined(input.hidden_source, run);
    if (hidden.defined()) rows = rows.masked_fill(hidden, 0);
    for (const RunPiece& piece : run.pieces) {
      const at::Tensor part = View(rows, piece.span);
      at::Tensor sums = Part(by_e, piece, 0, 1);
      e_->Add(part, piece.offset, 0, sums);
      if (f_ == e_) continue;
      sums = Part(by_f, piece, 0, 1);
      f_->Add(part, piece.offset, 0, sums);
    }
    RowsRead(run.rows);
  }
  const auto by_width = [&](const at::Tensor& sums, const at::Tensor& weight) {
    return SplitHeads(at::linear(sums.squeeze(1).to(weight.dtype()), weight), options_.heads);
  };
  return {by_width(by_e, to_k_), by_width(by_f, to_v_)};
}

void MultiHeadAttention::AttendToSlots(const AttentionInput& input, const LayerScratch& scratch,
                                       const Sink& sink) const {
  Slots slots = ProjectsLengthFirst(input.source_layout) ? ProjectLengthFirst(input, scratch)
                                                         : ProjectRows(input, scratch);
  e_->AddBias(slots.keys);
  f_->AddBias(slots.values);
  slots.keys = slots.keys.to(input.queries.dtype()).contiguous();
  slots.values = slots.values.to(input.queries.dtype()).contiguous();
  const int64_t width = options_.dim_head;
  for (const RowRun& run : RowRuns(input.query_layout, scratch.rows)) {
    const at::Tensor rows = input.queries.narrow(0, run.begin, run.rows);
    const at::Tensor joined =
        NewRows(input.query_layout, run.rows, options_.inner(), rows.options());
    for (const Heads& heads : Groups(scratch)) {
      const at::Tensor queries =
          Project(rows, to_q_, heads, NarrowIfDefined(input.hidden_queries, run));
      const at::Tensor results = joined.narrow(1, heads.first * width, heads.count * width);
      for (const RunPiece& piece : run.pieces) {
        View(results, piece.span)
            .copy_(AttendToOpenSlots(View(queries, piece.span),
                                     Part(slots.keys, piece, heads.first, heads.count),
                                     Part(slots.values, piece, heads.first, heads.count),
                                     {options_.causal, piece.offset}));
      }
    }
    sink(run.begin, Output(joined));
    RowsDone(run.rows);
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
  for (const RowRun& run : RowRuns(input.query_layout, scratch.rows)) {
    sink(run.begin, Output(joined.narrow(0, run.begin, run.rows)));
  }
}

at::Tensor MultiHeadAttention::Output(const at::Tensor& joined) const {
  const at::Tensor rows = w_o_(joined);
  return w_o_2_ ? (*w_o_2_)(rows) : rows;
}

}  // namespace linserve::linformer_pytorch
