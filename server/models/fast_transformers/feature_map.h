#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "attention/blocks/block_features.h"
#include "attention/linear/feature_attention.h"
#include "models/fast_transformers/options.h"
#include "models/network/parameters.h"

namespace linserve::fast_transformers {

// Warns of checkpoints whose package draws new directions at each pass.
inline constexpr const char* kRedrawn =
    "deterministic_eval is false: the package draws random features anew at each pass, so that it "
    "never answers alike; here those of the checkpoint are used";

// Makes features of the queries and keys of each head, by directions that are in the checkpoint.
class FeatureMap {
 public:
  FeatureMap(const FeatureMapOptions& options, int64_t width, bool rotary);

  // Declares the directions by this name.
  void Declare(const Scope& scope, const std::string& name);

  int64_t features() const;  // of a head

  // Returns the form of linear attention for these queries and keys [..., rows, width].
  FeatureForm Form(const at::Tensor& queries, const at::Tensor& keys) const;

  // Says whether features of a row depend on nothing else, so that blocks can be computed.
  bool WorksByBlocks() const { return !options_.stabilize; }
  const BlockFeatures& blocks() const { return *blocks_; }  // REQUIRES: on the CPU

 private:
  void Prepare();

  FeatureMapOptions options_;
  int64_t width_;
  bool rotary_;
  at::Tensor directions_;  // as in the checkpoint [width, directions]
  RandomFeatures random_{};
  std::optional<BlockFeatures> blocks_;
};

}  // namespace linserve::fast_transformers
