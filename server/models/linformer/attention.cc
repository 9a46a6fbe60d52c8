#include "models/linformer/attention.h"

#include <memory>
#include <string>

namespace linserve::linformer {

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

ProjectedAttention MakeAttention(const AttentionOptions& options) {
  const auto matrix = [&] {
    return std::make_shared<LengthMatrix>(options.seq_len, options.k,
                                          LengthMatrix::Form::kParameter);
  };
  const auto e = matrix();
  return {{.dim = options.dim,
           .heads = options.heads,
           .dim_head = options.dim_head,
           .kv_heads = options.one_kv_head ? 1 : options.heads,
           .share_kv = options.share_kv,
           .causal = options.causal},
          {.query = "to_q",
           .key = "to_k",
           .value = "to_v",
           .out = "to_out",
           .e = "proj_k",
           .f = "proj_v"},
          e,
          // With share_kv the values are the keys, projected by the same matrix.
          options.share_kv ? e : matrix()};
}

}  // namespace linserve::linformer
