#pragma once

#include "models/network/layers.h"
#include "models/network/parameters.h"
#include "models/transformers/options/options.h"

namespace linserve::transformers {

// Says what the package's classes call their tensors. nullptr: there is none, or another one holds
// it.
struct Names {
  const char* words = nullptr;
  const char* positions = nullptr;
  const char* types = nullptr;
  const char* embedding_projection = nullptr;
  const char* embedding_norm = nullptr;
  const char* layers = nullptr;
  const char* of_group = nullptr;  // where layers are those of groups
  const char* query = nullptr;
  const char* key = nullptr;
  const char* value = nullptr;
  const char* joined = nullptr;  // query, key and value in one
  const char* query_norm = nullptr;
  const char* key_norm = nullptr;
  const char* position_key = nullptr;  // of relative positions
  const char* position_query = nullptr;
  const char* convolution = nullptr;
  const char* out = nullptr;
  const char* attention_norm = nullptr;
  const char* again_norm = nullptr;  // of its result and, once more, the rows that attention read
  const char* gate = nullptr;        // of the feed-forward, where it is not one with `inner`
  const char* inner = nullptr;
  const char* outer = nullptr;
  const char* inner_norm = nullptr;
  const char* norm = nullptr;  // at the end
  const char* pooler = "pooler.dense";
};

const Names& NamesOf(Family family);

// Declares a norm, which checkpoints that came from TensorFlow call by its other names.
inline void DeclareNorm(const Scope& scope, LayerNorm& norm) {
  norm.Declare(scope);
  scope.Declare("gamma", norm.weight, {norm.width}, Init::kOnes);
  if (norm.with_bias) scope.Declare("beta", norm.bias, {norm.width}, Init::kZeros);
}

}  // namespace linserve::transformers
