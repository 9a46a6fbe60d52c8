#include "models/encoder/attention.h"

#include <utility>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/linear/kernel_attention.h"
#include "attention/positions/positions.h"
#include "attention/rows/aten.h"

namespace linserve::encoder {
namespace {

BlockAttention::Sizes SoftmaxSizes(const Options& options, DType products) {
  return {.heads = options.heads,
          .dim_head = options.dim_head,
          .products = products,
          .after = options.causal ? 0 : -1,
          .causal = options.causal};
}

}  // namespace

Attention::Attention(const Options& options)
    : options_(options),
      to_q_(options.dim, options.inner(), /*biased=*/false),
      to_k_(options.dim, options.inner(), /*biased=*/false),
      to_v_(options.dim, options.inner(), /*biased=*/false),
      to_out_(options.inner(), options.dim),
      softmax_(SoftmaxSizes(options, DType::kF32)) {}

void Attention::Declare(const Scope& scope) {
  to_q_.Declare(scope / "to_q");
  to_k_.Declare(scope / "to_k");
  to_v_.Declare(scope / "to_v");
  to_out_.Declare(scope / "to_out");
  scope.AfterLoading([this](DType products) {
    qkv_.Join({&to_q_, &to_k_, &to_v_});
    if (!IsLinear(*options_.method)) softmax_ = BlockAttention(SoftmaxSizes(options_, products));
  });
}

at::Tensor Attention::operator()(const at::Tensor& rows, const Context& context) const {
  std::vector<at::Tensor> qkv = qkv_(rows);
  at::Tensor& queries = qkv[0];
  at::Tensor& keys = qkv[1];
  at::Tensor& values = qkv[2];
  if (context.rotation.defined()) {
    Rotate(queries, context.position_layout, options_.heads, context.rotation);
    Rotate(keys, context.position_layout, options_.heads, context.rotation);
  }
  if (context.memory != nullptr) {
    Continue(queries, keys, values, context);
  } else {
    AttendToKeys(queries, keys, values, context);
  }
  return to_out_(queries);
}

void Attention::AttendToKeys(at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const Context& context) const {
  if (AttendOnDevice(queries, keys, values, context)) return;
  CheckNotRecording(context.layout);
  at::Tensor mask = context.mask;
  for (const Span& span : SpansOfPadded(context.layout, context.layout, mask).first) {
    const auto heads = [&](const at::Tensor& rows) {
      return SplitHeads(View(rows, span), options_.heads);
    };
    Visible visible{.causal = options_.causal};
    if (mask.defined()) visible.mask = View(mask, span).unsqueeze(1);
    const at::Tensor result =
        Attend(*options_.method, heads(queries), heads(keys), heads(values), visible);
    View(queries, span).copy_(JoinHeads(result));
  }
}

bool Attention::AttendOnDevice(at::Tensor& queries, const at::Tensor& keys,
                               const at::Tensor& values, const Context& context) const {
  if (!IsKernel(*options_.method)) return false;
  const auto kernel = KernelsFor(queries).linear_attention;
  if (kernel == nullptr || !context.layout.table) return false;
  const LayoutTable& layout = *context.layout.table;
  // The kernel cannot write over the queries, since several of its blocks read the same ones.
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

double Attention::Flops(int64_t length) const {
  const auto rows = static_cast<double>(length);
  const double linears = rows * static_cast<double>(3 * to_q_.Flops() + to_out_.Flops());
  const AttentionSizes sizes{length, length, options_.dim_head, options_.dim_head, options_.causal};
  return linears + static_cast<double>(options_.heads) * AttentionFlops(*options_.method, sizes);
}

}  // namespace linserve::encoder
