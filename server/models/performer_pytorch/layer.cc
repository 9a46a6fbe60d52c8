#include "models/performer_pytorch/layer.h"

#include "attention/local/token_shift.h"
#include "attention/rows/aten.h"

namespace linserve::performer_pytorch {
namespace {

LayerNorm NormOf(const Options& options) {
  constexpr double kShortest = 1e-5;
  return options.norm == Options::Norm::kScale ? LayerNorm::OfLength(options.dim, kShortest)
                                               : LayerNorm(options.dim);
}

}  // namespace

Branch::Branch(const Options& options) : kind_(options.norm), norm_(NormOf(options)) {}

Scope Branch::Declare(const Scope& scope, bool shifted, Linear& outputs) {
  switch (kind_) {
    case Options::Norm::kLayer:
      norm_.Declare(scope / "norm");
      break;
    case Options::Norm::kScale:
      norm_.Declare(scope);
      break;
    case Options::Norm::kReZero:
      scope.Declare("g", factor_, {}, Init::kOnes);
      scope.AfterLoading([this, &outputs](DType) {
        if (!factor_.defined()) return;  // declared twice: under two names
        outputs.weight = outputs.weight * factor_;
        if (outputs.with_bias) outputs.bias = outputs.bias * factor_;
        factor_.reset();
      });
      break;
  }
  return shifted ? scope / "fn" / "fn" : scope / "fn";
}

Layer::Layer(const Options& options, Kind kind, int64_t step)
    : kind_(kind),
      dim_(options.dim),
      shifts_(options.shift_tokens && kind == Kind::kSelf ? options.shifts()
                                                          : std::vector<int64_t>()),
      attending_(options),
      attention_(options,
                 kind == Kind::kSelf ? options.local_attn_heads[static_cast<size_t>(step)] : 0,
                 /*crossing=*/kind == Kind::kContext),
      feeding_(options),
      feed_forward_(options.dim, options.ff_mult * options.dim, options.dim, Activation::kGelu,
                    /*with_gate=*/options.ff_glu) {}

void Layer::Declare(const Scope& attention, const Scope& feed_forward) {
  const bool shifted = !shifts_.empty();
  attention_.Declare(attending_.Declare(attention, shifted, attention_.outputs()));
  // The package's module that cuts rows into chunks is in between.
  feed_forward_.Declare(feeding_.Declare(feed_forward, shifted, feed_forward_.w2) / "fn");
}

void Layer::Apply(at::Tensor& source, const Sequences& sequences, at::Tensor& target) const {
  if (sequences.memory) {
    AddNextAttention(source, sequences, target);
    return AddFeedForward(target, sequences, source);
  }
  if (!attention_.WorksByBlocks() || !shifts_.empty()) {
    AddAttention(source, sequences, target, {});
    return AddFeedForward(target, sequences, source);
  }
  AddAttention(source, sequences, target, feed_forward_.Step(source, target, feeding_.norm()));
}

void Layer::AddAttention(const at::Tensor& source, const Sequences& sequences, at::Tensor& target,
                         const BlockStep& then) const {
  NormedRows x{source, attending_.norm()};
  at::Tensor shifted;
  if (!shifts_.empty()) shifted = Shifted(x.Normed(), sequences, sequences.own.mask);
  const NormedRows own = shifted.defined() ? NormedRows{shifted} : x;
  const bool context = kind_ == Kind::kContext;
  const MaskedLayout& layout = context ? sequences.context_layout : sequences.own;
  const at::Tensor rotary = context ? at::Tensor() : sequences.rotary;
  if (attention_.WorksByBlocks()) {
    const NormedRows keys = context ? NormedRows{sequences.context} : own;
    return attention_.AddByBlocks(target, own, sequences.own.layout, keys, layout, rotary, then);
  }
  const at::Tensor rows = own.Normed();
  target.add_(attention_.Forward(rows, sequences.own.layout, context ? sequences.context : rows,
                                 layout, rotary));
}

void Layer::AddNextAttention(const at::Tensor& source, const Sequences& sequences,
                             at::Tensor& target) const {
  at::Tensor rows = NormedRows{source, attending_.norm()}.Normed();
  if (!shifts_.empty()) rows = Shifted(rows, sequences, {});
  const PlacedLayout& layout = sequences.own.layout;
  if (kind_ == Kind::kContext) {
    attention_.AddNextToContext(target, rows, layout, sequences.context, sequences.context_layout,
                                *sequences.memory);
  } else {
    attention_.AddNext(target, rows, layout, sequences.rotary, *sequences.memory);
  }
}

void Layer::AddFeedForward(const at::Tensor& source, const Sequences& sequences,
                           at::Tensor& target) const {
  if (shifts_.empty()) return feed_forward_.AddTo(target, source, feeding_.norm());
  const at::Tensor rows = NormedRows{source, feeding_.norm()}.Normed();
  feed_forward_.AddTo(target, Shifted(rows, sequences, {}), nullptr);
}

at::Tensor Layer::Shifted(const at::Tensor& rows, const Sequences& sequences,
                          const at::Tensor& mask) const {
  const PlacedLayout& layout = sequences.own.layout;
  if (sequences.memory) return ContinueShift(rows, layout, shifts_, sequences.memory->Next());
  return ShiftTokens(rows, layout, shifts_, mask);
}

std::vector<StateSlot> Layer::State() const {
  std::vector<StateSlot> state = attention_.State();
  if (shifts_.empty()) return state;
  // Each of the two branches has a slot, around the attention's own.
  const StateSlot passed_on{{dim_ / std::ssize(shifts_)}};
  state.insert(state.begin(), passed_on);
  state.push_back(passed_on);
  return state;
}

double Layer::Flops(int64_t rows, int64_t context_rows) const {
  return attention_.Flops(rows, kind_ == Kind::kContext ? context_rows : rows) +
         static_cast<double>(feed_forward_.Flops()) * static_cast<double>(rows);
}

}  // namespace linserve::performer_pytorch
