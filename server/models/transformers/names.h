#pragma once

#include "models/transformers/options.h"

namespace linserve::transformers {

// Says what the package's classes call their tensors. nullptr: there is none, or another one holds
// it.
struct Names {
  const char* words = nullptr;
  const char* positions = nullptr;
  const char* types = nullptr;
  const char* embedding_norm = nullptr;
  const char* layers = nullptr;
  const char* query = nullptr;
  const char* key = nullptr;
  const char* value = nullptr;
  const char* joined = nullptr;  // query, key and value in one
  const char* convolution = nullptr;
  const char* out = nullptr;
  const char* attention_norm = nullptr;
  const char* gate = nullptr;  // of the feed-forward, where it is not one with `inner`
  const char* inner = nullptr;
  const char* outer = nullptr;
  const char* inner_norm = nullptr;
  const char* norm = nullptr;  // at the end
};

const Names& NamesOf(Family family);

}  // namespace linserve::transformers
