#pragma once

#include <cstdint>

#include "models/config/params.h"
#include "models/network/layers.h"

namespace linserve::t5 {

enum class Family : uint8_t { kT5, kMt5, kUmt5 };

// Holds what a configuration of any of these models says.
struct Options {
  int64_t vocabulary = 0;
  int64_t dim = 0;
  int64_t heads = 0;
  int64_t dim_head = 0;
  int64_t inner = 0;  // of the feed-forward
  int64_t depth = 0;
  int64_t longest = 0;   // sequence
  int64_t buckets = 0;   // of distances, rows of a table
  int64_t furthest = 0;  // distance from which on all share the last bucket
  double eps = 1e-6;     // of the norms
  Activation activation = Activation::kRelu;
  bool gated = false;       // feed-forward
  bool own_tables = false;  // each layer has a table of distances, and not the first one for all

  int64_t width() const { return heads * dim_head; }  // of queries, which need not be dim

  // Reads the configuration of a model of this family. Throws ConfigError.
  static Options From(Family family, Params& params);
};

}  // namespace linserve::t5
