#include "models/linear_attention_transformer/layer.h"

#include <algorithm>
#include <vector>

#include "attention/local/token_shift.h"
#include "attention/rows/aten.h"

namespace linserve::linear_attention_transformer {
namespace {

// The package's wrappers around a module (norm, shift, chunks, fold) each add an "fn" to its name.
Scope Wrapped(Scope scope, int wrappers) {
  for (int i = 0; i < wrappers; ++i) scope = scope / "fn";
  return scope;
}

ProjectedAttention LinformerOf(const Options& options, const Options::LinformerSettings& settings) {
  linformer::AttentionOptions attention;
  attention.dim = options.dim;
  attention.seq_len = settings.seq_len;
  attention.k = settings.k;
  attention.heads = options.heads;
  attention.dim_head = options.dim_head;
  return linformer::MakeAttention(attention);
}

}  // namespace

Layer::AnyAttention Layer::MakeAttention(const Options& options, Kind kind, int64_t step) {
  const auto& linformer =
      kind == Kind::kMain ? options.linformer_settings : options.context_linformer_settings;
  if (linformer && kind != Kind::kAxial) return LinformerOf(options, *linformer);
  AttentionOptions attention;
  attention.dim = options.dim;
  attention.heads = options.heads;
  attention.dim_head = options.dim_head;
  attention.causal = options.causal && kind != Kind::kContext;
  if (kind == Kind::kMain) {
    attention.local_heads = options.n_local_attn_heads[static_cast<size_t>(step)];
    attention.window = options.local_attn_window_size;
    attention.outside_is_seen = options.local_attention_sees_outside;
    attention.bucket = std::max<int64_t>(1, options.blindspot_size);  // the package takes 0 for 1
  } else if (kind == Kind::kAxial) {
    // The package passes on neither dim_head nor the blind spot.
    attention.dim_head = options.dim / options.heads;
    attention.axial_width = options.local_attn_window_size;
  }
  return Attention(attention);
}

Layer::FeedForwardOrMemory Layer::MakeFeedForward(const Options& options, Kind kind, int64_t step) {
  const bool main = kind == Kind::kMain;
  if (main && options.pkm_layers.contains(step + 1)) return ProductKeyMemory(options.dim);
  // The package gives ff_glu to all but the main layers.
  return FeedForward(options.dim, 4 * options.dim, options.dim, Activation::kGelu,
                     /*with_gate=*/options.ff_glu && !main);
}

Layer::Layer(const Options& options, Kind kind, int64_t step)
    : kind_(kind),
      dim_(options.dim),
      shifted_(options.shift_tokens && kind == Kind::kMain),
      causal_(options.causal),
      attention_norm_(options.dim),
      attention_(MakeAttention(options, kind, step)),
      feed_forward_norm_(options.dim),
      feed_forward_(MakeFeedForward(options, kind, step)) {}

void Layer::Declare(const Scope& attention, const Scope& feed_forward) {
  const int shift = shifted_ ? 1 : 0;
  const int fold = kind_ == Kind::kAxial ? 1 : 0;
  const int chunk = std::holds_alternative<FeedForward>(feed_forward_) ? 1 : 0;
  std::visit([&](auto& module) { module.Declare(Wrapped(attention, 1 + shift + fold)); },
             attention_);
  attention_norm_.Declare(attention / "norm");
  std::visit([&](auto& module) { module.Declare(Wrapped(feed_forward, 1 + shift + chunk)); },
             feed_forward_);
  feed_forward_norm_.Declare(feed_forward / "norm");
}

bool Layer::WorksByBlocks() const {
  const auto* linear = std::get_if<Attention>(&attention_);
  return linear != nullptr ? linear->WorksByBlocks()
                           : std::get<ProjectedAttention>(attention_).packed();
}

void Layer::Apply(at::Tensor& source, const Sequences& sequences, at::Tensor& target) const {
  const auto* feed_forward = std::get_if<FeedForward>(&feed_forward_);
  if (sequences.memory) {
    AddNextAttention(source, sequences, target);
    return AddFeedForward(target, sequences, source);
  }
  if (!WorksByBlocks() || shifted_ || feed_forward == nullptr) {
    AddAttention(source, sequences, target, {});
    return AddFeedForward(target, sequences, source);
  }
  AddAttention(source, sequences, target, feed_forward->Step(source, target, &feed_forward_norm_));
}

void Layer::AddAttention(const at::Tensor& source, const Sequences& sequences, at::Tensor& target,
                         const BlockStep& then) const {
  at::Tensor shifted;
  if (shifted_) shifted = Shifted(attention_norm_(source), sequences);
  const NormedRows x = shifted_ ? NormedRows{shifted} : NormedRows{source, &attention_norm_};
  const bool context = kind_ == Kind::kContext;
  const NormedRows keys = context ? NormedRows{sequences.context} : x;
  const MaskedLayout& layout = context ? sequences.context_layout : sequences.own;
  const PlacedLayout& own = sequences.own.layout;
  const at::Tensor rotary = context ? at::Tensor() : sequences.rotary;
  if (const auto* linformer = std::get_if<ProjectedAttention>(&attention_)) {
    const ProjectedAttention::Input input{x, own, keys, layout.layout};
    if (!linformer->packed()) return linformer->AddTo(target, input);
    return linformer->AddByBlocks(target, input, then);
  }
  const auto& linear = std::get<Attention>(attention_);
  if (linear.WorksByBlocks()) {
    return linear.AddByBlocks(target, x, own, keys, layout, rotary, then);
  }
  const at::Tensor rows = x.Normed();
  target.add_(linear.Forward(rows, own, context ? sequences.context : rows, layout, rotary));
}

void Layer::AddNextAttention(const at::Tensor& source, const Sequences& sequences,
                             at::Tensor& target) const {
  at::Tensor rows = attention_norm_(source);
  if (shifted_) rows = Shifted(rows, sequences);
  const auto& attention = std::get<Attention>(attention_);
  const PlacedLayout& layout = sequences.own.layout;
  if (kind_ == Kind::kContext) {
    attention.AddNextToContext(target, rows, layout, sequences.context, sequences.context_layout,
                               *sequences.memory);
  } else {
    attention.AddNext(target, rows, layout, sequences.rotary, *sequences.memory);
  }
}

at::Tensor Layer::Shifted(const at::Tensor& rows, const Sequences& sequences) const {
  const PlacedLayout& layout = sequences.own.layout;
  const std::vector<int64_t> shifts =
      causal_ ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{1, 0, -1};
  if (sequences.memory) return ContinueShift(rows, layout, shifts, sequences.memory->Next());
  return ShiftTokens(rows, layout, shifts);
}

std::vector<StateSlot> Layer::State() const {
  const auto& attention = std::get<Attention>(attention_);
  if (kind_ == Kind::kContext) return attention.ContextState();
  std::vector<StateSlot> state = attention.State();
  if (!shifted_) return state;
  // Each of the two branches has a slot, around the attention's own.
  const StateSlot passed_on{{dim_ / 2}};
  state.insert(state.begin(), passed_on);
  state.push_back(passed_on);
  return state;
}

void Layer::AddFeedForward(const at::Tensor& source, const Sequences& sequences,
                           at::Tensor& target) const {
  at::Tensor x = source;
  const LayerNorm* norm = &feed_forward_norm_;
  if (shifted_) {
    x = Shifted(feed_forward_norm_(source), sequences);
    norm = nullptr;
  }
  if (const auto* feed_forward = std::get_if<FeedForward>(&feed_forward_)) {
    return feed_forward->AddTo(target, x, norm);
  }
  AddByRows(target, x, [&](const at::Tensor& rows) {
    return std::get<ProductKeyMemory>(feed_forward_)(norm != nullptr ? (*norm)(rows) : rows);
  });
}

double Layer::Flops(int64_t rows, int64_t context_rows) const {
  const int64_t keys = kind_ == Kind::kContext ? context_rows : rows;
  const auto per_row = std::visit([](const auto& module) { return module.Flops(); }, feed_forward_);
  return std::visit([&](const auto& module) { return module.Flops(rows, keys); }, attention_) +
         static_cast<double>(per_row) * static_cast<double>(rows);
}

}  // namespace linserve::linear_attention_transformer
