#pragma once

#include <cstdint>

#include "models/transformers/options/options.h"

namespace linserve::transformers {

// Holds the sizes that a configuration need not say.
struct UsualSizes {
  int64_t vocabulary = 30522;
  int64_t dim = 768;
  int64_t heads = 12;
  int64_t inner = 3072;
  int64_t depth = 12;
  int64_t types = 2;
  double eps = 1e-12;
  int64_t positions = 512;
  int64_t padding = -1;  // the token that positions do not count; -1: they count all
};

// These read the configurations of BERT and of what differs from it in few places. They throw
// ConfigError.

// Reads all that BERT's kin have but for their positions.
Options BertSizes(Family family, Params& params, const UsualSizes& usual);
// Reads what has a table of absolute positions besides.
Options Bert(Family family, Params& params, const UsualSizes& usual);
// Reads RoBERTa's kin.
Options Roberta(Family family, Params& params);
Options Ernie(Params& params);
Options MegatronBert(Params& params);
Options Esm(Params& params);
Options RoFormer(Params& params);

// Refuses what makes a decoder of a model.
void RefuseIf(Params& params, const char* key);

}  // namespace linserve::transformers
