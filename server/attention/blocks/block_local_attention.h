#pragma once

#include <cstdint>

#include "attention/blocks/block_attention.h"
#include "attention/products/block_math.h"
#include "core/tensor/dtype.h"

namespace linserve {

// Computes LocalAttention() (attention/local/local_attention.h) of one sequence to its own keys,
// block by block. It takes F32 on the CPU.
class BlockLocalAttention {
 public:
  struct Sizes {
    int64_t heads;
    int64_t dim_head;
    int64_t window;
    bool causal = false;
    DType products = DType::kF32;
  };

  // Holds a sequence's rows [count, heads · dim_head].
  struct Rows {
    RowBlock queries, keys, values;
    int64_t count;
    const float* key_scores = nullptr;  // [count], 0 or BlockAttention::kHidden; nullptr: all 0
  };

  // A block of queries keeps all keys that it sees, which are those of three windows: longer ones
  // are better computed otherwise.
  static constexpr int64_t kLongestWindow = 2048;

  explicit BlockLocalAttention(const Sizes& sizes);

  // Overwrites the queries by what they attend to. On all threads, block by block, each with
  // scratch for three windows of keys and values.
  void Attend(const Rows& rows) const;

 private:
  void AttendBlock(const Rows& rows, int64_t window, int64_t row, int64_t count,
                   float* scratch) const;

  Sizes sizes_;
  BlockAttention attention_;
};

}  // namespace linserve
