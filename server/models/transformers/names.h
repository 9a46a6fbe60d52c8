#pragma once

#include "models/transformers/options.h"

namespace linserve::transformers {

// Says what the package's classes call their tensors. nullptr: there is none, or another one holds
// it.
struct Names {
  const char* words;
  const char* positions;
  const char* types;
  const char* embedding_norm;
  const char* layers;
  const char* query;
  const char* key;
  const char* value;
  const char* joined;  // query, key and value in one
  const char* out;
  const char* attention_norm;
  const char* inner;
  const char* outer;
  const char* inner_norm;
  const char* norm;  // at the end
};

const Names& NamesOf(Family family);

}  // namespace linserve::transformers
