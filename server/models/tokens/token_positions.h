#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/network/parameters.h"
#include "models/network/sequences.h"

namespace linserve {

// Says what the positions of a language model's tokens are.
struct PositionOptions {
  // Rotary ones are sinusoids that are added to the rows, and others that turn every layer's heads.
  enum class Kind : uint8_t { kNone, kLearned, kAxial, kRotary };

  Kind kind = Kind::kLearned;
  int64_t longest = 0;               // rows of learned and rotary tables
  int64_t width = 0;                 // of a token's row, in features
  int64_t head_width = 0;            // of what rotary positions turn, in features
  std::vector<int64_t> axial_shape;  // the coarsest axis first
};

// Holds the tables of positions under the names that the packages by lucidrains give them.
class TokenPositions {
 public:
  explicit TokenPositions(PositionOptions options);

  // Declares pos_emb and layer_pos_emb.
  void Declare(const Scope& scope);

  // Adds to rows [rows, width], laid out as `sequences.own`, or next in their sessions.
  void AddTo(at::Tensor& rows, const Sequences& sequences) const;
  // Returns what Sequences::rotary asks for; undefined where the positions are not rotary.
  at::Tensor RotaryOf(const Sequences& sequences) const;

 private:
  void PrepareAxes();

  PositionOptions options_;
  at::Tensor table_;              // [longest, width]: learned or sinusoid
  at::Tensor head_table_;         // [longest, head_width]
  std::vector<at::Tensor> axes_;  // [1, 1, ..., axis, ..., 1, width]
  at::Tensor coarse_;             // [·, width]: the sum of all axes but the last
};

}  // namespace linserve
