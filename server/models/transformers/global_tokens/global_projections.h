#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/network/layers.h"
#include "models/network/parameters.h"
#include "models/transformers/global_tokens/global_tokens.h"

namespace linserve::transformers {

// Makes the queries of Longformer's global tokens, and the keys and values that these queries see.
class GlobalProjections {
 public:
  explicit GlobalProjections(int64_t dim);

  // Declares them beside the projections of other tokens.
  void Declare(const Scope& self);
  bool packed() const { return query_.packed && key_value_.packed; }

  // Returns the queries of tokens [tokens, dim], with rows behind them as BlockAttention reads
  // them.
  at::Tensor Queries(const at::Tensor& rows, const GlobalTokens& tokens) const;
  // Makes keys and values, side by side, of `count` rows. REQUIRES: packed().
  void SetKeysAndValues(const RowBlock& out, const RowBlock& rows, int64_t count) const {
    key_value_.Set(out, rows, count);
  }
  // Makes them of all rows: [rows, 2 · dim]. REQUIRES: not packed().
  at::Tensor KeysAndValues(const at::Tensor& rows) const { return key_value_(rows); }

 private:
  Linear query_;
  Linear key_, value_;  // without weights once they are joined
  Linear key_value_;
};

}  // namespace linserve::transformers
