#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/config/params.h"
#include "models/network/attention_method.h"

namespace linserve::encoder {

enum class Positions : uint8_t { kNone, kLearned, kSinusoidal, kRotary };

// Holds the arguments of linserve.Encoder.
struct Options {
  std::optional<AttentionMethod> method;  // nullopt: linformer
  int64_t dim = 0;
  int64_t depth = 0;
  int64_t heads = 8;
  int64_t dim_head = 0;
  int64_t ff_mult = 4;
  bool causal = false;
  int64_t seq_len = 0;  // of linformer
  int64_t k = 0;
  std::optional<int64_t> num_tokens;  // nullopt: rows of floats
  Positions positions = Positions::kNone;
  std::optional<int64_t> max_seq_len;

  // Reads and checks them. Throws ConfigError.
  static Options From(Params& params);

  bool linformer() const { return !method.has_value(); }
  int64_t inner() const { return heads * dim_head; }

  // Says why the network has no sessions; empty if it has.
  std::string SessionRefusal() const;
};

}  // namespace linserve::encoder
