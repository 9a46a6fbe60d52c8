#include "models/encoder_modules.h"

#include <utility>
#include <vector>

#include "attention/aten.h"
#include "attention/device_plugin.h"
#include "attention/kernel_attention.h"
#include "attention/linformer_attention.h"
#include "attention/positions.h"
#include "attention/slot_attention.h"

namespace linserve {
namespace {

std::optional<AttentionMethod> MethodFrom(Params& params) {
  const std::string name =
      params.Choice("attention", "softmax", {"softmax", "efficient", "elu", "taylor", "linformer"});
  const bool normalize = params.Flag("normalize", true);
  if (name == "softmax") return AttentionMethod::kSoftmax;
  if (name == "efficient") return AttentionMethod::kEfficient;
  if (name == "taylor") return AttentionMethod::kTaylor;
  if (name == "linformer") return std::nullopt;
  return normalize ? AttentionMethod::kKernelNormalized : AttentionMethod::kKernel;
}

EncoderPositions PositionsFrom(Params& params) {
  const std::vector<std::string> names = {"none", "learned", "sinusoidal", "rotary"};
  const std::string name = params.Choice("positions", "none", names);
  size_t index = 0;
  while (names[index] != name) ++index;
  return static_cast<EncoderPositions>(index);
}

void CheckPositions(const EncoderOptions& options, Params& params) {
  if (options.positions == EncoderPositions::kLearned && !options.max_seq_len) {
    params.Fail("max_seq_len", "the number of learned positions, a positive integer");
  }
  if (options.positions == EncoderPositions::kSinusoidal && options.dim % 2 != 0) {
    params.Fail("dim", "an even number with sinusoidal positions");
  }
  if (options.positions == EncoderPositions::kRotary && options.dim_head % 2 != 0) {
    params.Fail(params.Has("dim_head") ? "dim_head" : "dim",
                "heads of an even width with rotary positions; theirs is " +
                    std::to_string(options.dim_head));
  }
}

}  // namespace

EncoderOptions EncoderOptions::From(Params& params) {
  EncoderOptions options;
  options.method = MethodFrom(params);
  options.dim = params.Positive("dim");
  options.depth = params.Depth("depth");
  options.heads = params.Positive("heads", 8);
  if (!params.Has("dim_head") && options.dim % options.heads != 0) {
    params.Fail("dim",
                "a multiple of heads = " + std::to_string(options.heads) + ", or dim_head besides");
  }
  options.dim_head = params.Positive("dim_head", options.dim / options.heads);
  options.ff_mult = params.Positive("ff_mult", 4);
  options.causal = params.Flag("causal", false);
  // Accepted with every attention, so that one can be swapped for another.
  options.k = params.Positive("k", 256);
  options.seq_len = options.linformer() ? params.Positive("seq_len")
                                        : params.OptionalPositive("seq_len").value_or(0);
  options.num_tokens = params.OptionalPositive("num_tokens");
  options.positions = PositionsFrom(params);
  options.max_seq_len = params.OptionalPositive("max_seq_len");
  CheckPositions(options, params);
  return options;
}

std::string EncoderOptions::SessionRefusal() const {
  if (linformer()) return "attention \"linformer\" projects the whole input along its length";
  if (!IsLinear(*method)) {
    return "attention \"softmax\" needs every earlier key, so that what a session keeps would grow "
           "with the sequence";
  }
  if (!causal) return "causal is false, and every row attends to those after it";
  return "";
}

EncoderAttention::EncoderAttention(const EncoderOptions& options)
    : options_(options),
      to_q_(options.dim, options.inner(), /*biased=*/false),
      to_k_(options.dim, options.inner(), /*biased=*/false),
      to_v_(options.dim, options.inner(), /*biased=*/false),
      to_out_(options.inner(), options.dim) {}

void EncoderAttention::Declare(const Scope& scope) {
  to_q_.Declare(scope / "to_q");
  to_k_.Declare(scope / "to_k");
  to_v_.Declare(scope / "to_v");
  if (options_.linformer()) {
    scope.Declare("proj_k", proj_k_, {options_.seq_len, options_.k}, Init::kNormal);
    scope.Declare("proj_v", proj_v_, {options_.seq_len, options_.k}, Init::kNormal);
  }
  to_out_.Declare(scope / "to_out");
}

at::Tensor EncoderAttention::operator()(const at::Tensor& rows,
                                        const EncoderContext& context) const {
  at::Tensor queries = to_q_(rows);
  at::Tensor keys = to_k_(rows);
  at::Tensor values = to_v_(rows);
  if (context.rotation.defined()) {
    Rotate(queries, context.position_layout, options_.heads, context.rotation);
    Rotate(keys, context.position_layout, options_.heads, context.rotation);
  }
  if (options_.linformer()) {
    AttendToProjected(queries, keys, values, context);
  } else if (context.memory != nullptr) {
    Continue(queries, keys, values, context);
  } else {
    AttendToKeys(queries, keys, values, context);
  }
  return to_out_(queries);
}

void EncoderAttention::AttendToKeys(at::Tensor& queries, const at::Tensor& keys,
                                    const at::Tensor& values, const EncoderContext& context) const {
  if (AttendOnDevice(queries, keys, values, context)) return;
  CheckNotRecording(context.layout);
  for (const Span& span : Spans(context.layout)) {
    const auto heads = [&](const at::Tensor& rows) {
      return SplitHeads(View(rows, span), options_.heads);
    };
    Visible visible{.causal = options_.causal};
    if (context.mask.defined()) visible.mask = View(context.mask, span).unsqueeze(1);
    const at::Tensor result =
        Attend(*options_.method, heads(queries), heads(keys), heads(values), visible);
    View(queries, span).copy_(JoinHeads(result));
  }
}

bool EncoderAttention::AttendOnDevice(at::Tensor& queries, const at::Tensor& keys,
                                      const at::Tensor& values,
                                      const EncoderContext& context) const {
  if (!options_.method || !IsKernel(*options_.method)) return false;
  const auto kernel = KernelsFor(queries).linear_attention;
  if (kernel == nullptr || !context.layout.table) return false;
  const LayoutTable& layout = *context.layout.table;
  // Several blocks read the same queries.
  const at::Tensor attended =
      NewRows(context.layout, queries.size(0), queries.size(1), queries.options());
  if (!kernel({.queries = queries,
               .keys = keys,
               .values = values,
               .mask = context.mask,
               .heads = options_.heads,
               .layout = layout,
               .key_layout = layout,
               .elu = true,
               .causal = options_.causal,
               .bucket = 1,
               .floor = KernelForm(options_.method == AttentionMethod::kKernelNormalized).floor},
              attended)) {
    return false;
  }
  queries = attended;
  return true;
}

void EncoderAttention::AttendToProjected(at::Tensor& queries, at::Tensor& keys, at::Tensor& values,
                                         const EncoderContext& context) const {
  if (context.mask.defined()) {
    const at::Tensor hidden = context.mask.logical_not().unsqueeze(-1);
    keys.masked_fill_(hidden, 0);
    values.masked_fill_(hidden, 0);
  }
  const at::Tensor key_slots = ProjectLength(keys, proj_k_, context.layout);
  const at::Tensor value_slots = ProjectLength(values, proj_v_, context.layout);
  if (!options_.causal) {
    queries = AttendToSlots(queries, key_slots, value_slots, options_.heads, context.layout);
    return;
  }
  for (const Span& span : Spans(context.layout)) {
    const auto heads = [&](const at::Tensor& slots) {
      return SplitHeads(slots.narrow(0, span.first, span.count), options_.heads);
    };
    View(queries, span)
        .copy_(AttendToOpenSlots(View(queries, span), heads(key_slots), heads(value_slots),
                                 {.causal = true}));
  }
}

double EncoderAttention::Flops(int64_t length) const {
  const auto rows = static_cast<double>(length);
  const double linears = rows * static_cast<double>(3 * to_q_.Flops() + to_out_.Flops());
  if (options_.linformer()) {
    // Keys and values meet k slots, then queries and weights do.
    return linears + rows * static_cast<double>(8 * options_.k * options_.inner());
  }
  const AttentionSizes sizes{length, length, options_.dim_head, options_.dim_head, options_.causal};
  return linears + static_cast<double>(options_.heads) * AttentionFlops(*options_.method, sizes);
}

EncoderLayer::EncoderLayer(const EncoderOptions& options)
    : attn_norm_(options.dim),
      attn_(options),
      ff_norm_(options.dim),
      ff_(options.dim, options.ff_mult * options.dim) {}

void EncoderLayer::Declare(const Scope& scope) {
  attn_norm_.Declare(scope / "attn_norm");
  attn_.Declare(scope / "attn");
  ff_norm_.Declare(scope / "ff_norm");
  ff_.Declare(scope / "ff");
}

void EncoderLayer::Apply(at::Tensor& rows, const EncoderContext& context) const {
  if (attn_.WorksInParts(context)) {
    return attn_.AddInParts(rows, attn_norm_, context,
                            [&](const at::Tensor& part) { ff_.AddTo(part, part, &ff_norm_); });
  }
  rows.add_(attn_(attn_norm_(rows), context));
  ff_.AddTo(rows, rows, &ff_norm_);
}

double EncoderLayer::Flops(int64_t length) const {
  return attn_.Flops(length) + static_cast<double>(ff_.Flops()) * static_cast<double>(length);
}

}  // namespace linserve
