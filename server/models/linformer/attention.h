#pragma once

#include <cstdint>

#include "models/config/params.h"
#include "models/network/projected_attention.h"

namespace linserve::linformer {

struct AttentionOptions {
  int64_t dim = 0;
  int64_t seq_len = 0;
  int64_t k = 256;
  int64_t heads = 8;
  int64_t dim_head = 0;
  bool one_kv_head = false;
  bool share_kv = false;
  bool causal = false;  // slot s is hidden from queries before row s, which the package has not

  // Reads and checks the constructor arguments that all three classes share.
  static AttentionOptions From(Params& params);
};

// Makes linformer.LinformerSelfAttention: q, k, v without bias; keys and values projected along the
// length by proj_k and proj_v [seq_len, k].
ProjectedAttention MakeAttention(const AttentionOptions& options);

}  // namespace linserve::linformer
