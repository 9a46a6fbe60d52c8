#pragma once

#include <cstdint>
#include <limits>

#include "attention/products/block_math.h"

namespace linserve {

// Computes attention whose weights are products of features φ, of one sequence whose rows come in
// blocks:
//   out_i = Σ_j (φ(q_i) · φ(k_j)) v_j / max(Σ_j φ(q_i) · φ(k_j) + added, floor)
// over all keys or, causal, over those up to i. What is kept of the keys are sums in memory of the
// caller. All functions compute one head, on the calling thread, in F32. A row that nothing sees
// has zeros as its features.
// Source: Katharopoulos et al. 2020 (arXiv:2006.16236). It is FeatureAttention()
// (attention/linear/feature_attention.h) for blocks.
class BlockFeatureAttention {
 public:
  struct Sizes {
    int64_t heads;
    int64_t features;     // of a query or key of a head
    int64_t value_width;  // of a head
    double added = 0;
    double floor = std::numeric_limits<float>::lowest();
    bool divided = true;  // false: out_i is the sum over the values alone
  };

  explicit BlockFeatureAttention(const Sizes& sizes) : sizes_(sizes) {}

  // Returns the elements of the sums of all heads, which are zeros before the first key.
  int64_t SumElements() const { return sizes_.heads * sizes_.features * (sizes_.value_width + 1); }
  int64_t ScratchElements() const;

  // Adds keys [count, heads · features] with their values [count, heads · value_width].
  void Add(int64_t head, const RowBlock& keys, const RowBlock& values, int64_t count, float* sums,
           float* scratch) const;
  // Attends for at most a block of queries [count, heads · features] to the keys that were added.
  void Attend(int64_t head, const RowBlock& queries, int64_t count, float* sums,
              const RowBlock& out, float* scratch) const;
  // Adds these keys one by one, and attends for the query of each once it is added. The results
  // take the place of the values.
  void AttendCausally(int64_t head, const RowBlock& queries, const RowBlock& keys,
                      const RowBlock& values, int64_t count, float* sums, float* scratch) const;

 private:
  // Holds what belongs to one head: its columns of the blocks, and its sums.
  struct Head;

  Head Of(int64_t head, float* sums) const;
  void AddBlock(const Head& own, const RowBlock& turned, const RowBlock& keys,
                const RowBlock& values, int64_t count) const;
  void AttendBlockCausally(const Head& own, const RowBlock& queries, const RowBlock& keys,
                           const RowBlock& values, int64_t count, float* scratch) const;
  // Divides results by these sums of weights, which it overwrites.
  void Divide(const RowBlock& results, int64_t count, float* weights) const;

  Sizes sizes_;
};

}  // namespace linserve
