#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/kernels/lanes.h"

namespace linserve::cuda {

// Computes linear attention for all sequences of a batch, whose features are computed where they
// are used:
//   y_t = Σ_s w_ts · v_s [/ max(Σ_s w_ts, floor)],  w_ts = Σ_d φ(q_t)_d · ψ(k_s)_d
// over all rows s of the keys, or (causal) those up to t, or in the buckets before t's. The
// references are CausalLinearAttention(), LinearAttention() and KernelAttention() of attention/.
//
// Features are products of numbers as large as exp(k), which 16 bits cannot hold. So what has been
// read is kept, for each feature d, as the total Σ_s ψ(k_s)_d and as the mean of the values weighed
// by it. Features that are exp are kept relative to the largest so far, and that as a logarithm;
// those that are elu + 1 fit 16 bits as they are. Each query's features meet the scales of the
// keys' and become relative to the largest of their products. (In F16, what lies e^17 below the
// largest key of the query's tile, whether the query sees that or not, is 0.)
//
// Kernels, in tiles of 64 rows on the tensor cores with sums in F32:
//   CausalLinearAttention  goes over the rows of a sequence and head once, in order: what was read
//                          before the tile through its state, which stays in registers, and the
//                          rows of the tile through their 64 x 64 weights.
//   WholeLinearAttention   goes over all keys of a sequence and head, and then over its queries.
// and where few long sequences would leave most of the GPU idle, in parts:
//   SumKeys                what the keys of a part add up to,
//   AddParts               what the parts before each one (causal), or all, add up to: then
//                          CausalLinearAttention for each part, or
//   AttendToKeys           for each tile of queries.
//
// For m rows and each head of D features causal attention computes m · (8 · D · D) FLOPs within
// and before tiles at D = 64, and must move 4 · m · D · 2 bytes; not causal 4 · m · D · D and the
// same bytes. Both are bound by memory.

// Names the features, and says where they come from.
enum class FeatureMap : uint8_t {
  kExp,  // φ = softmax over the features · D^-1/2, ψ = exp (linear-attention-transformer)
  kElu,  // φ = ψ = elu + 1 (Katharopoulos et al. 2020, arXiv:2006.16236)
};

// Stands for the logarithm of nothing: it is finite, so that differences are numbers.
inline constexpr float kLogOfNothing = -1e30F;

// (Here logarithms are to the base 2.)
LINSERVE_KERNEL float EluPlusOne(float x) { return fmaxf(x, 0) + Exp2(fminf(x * kLog2OfE, 0)); }

// Tells of the keys' features what queries need to know, [D] each in shared memory.
struct FeatureScales {
  const float* scales;  // the totals, of kExp their logarithms
  // Only of causal attention: what numbers in a tile of keys, and totals before it, are multiplied
  // by to be shares of the totals with that tile.
  const float* own;
  const float* before;
};

template <typename T>
struct LinearAttentionArguments {
  const T* queries;  // [rows, heads · D], all rows begin at multiples of 16 bytes
  int64_t query_stride;
  const T* keys;
  int64_t key_stride;
  const T* values;
  int64_t value_stride;
  const bool* visible;    // keys that count; null: all
  const int32_t* starts;  // of the queries
  const int32_t* lengths;
  const int32_t* key_starts;
  const int32_t* key_lengths;
  T* result;
  int64_t result_stride;

  // Holds logarithms of the totals [D] and means [D, D] of each sequence, head and part of keys:
  // what each part adds up to, and what lies before it, which is all keys for part 0 if not causal.
  float* logs;
  float* means;
  float* logs_before;
  float* means_before;
  int heads;
  int parts;      // of the longest sequence
  int part_rows;  // a multiple of 64
  // Queries that a block of those that attend to all keys has, a multiple of 64.
  int query_rows;

  bool causal;
  int bucket;  // a power of two, up to 64
  // Says whether the result is divided by the sum of weights. Not causal, kExp divides each feature
  // by its own sum instead, which is the keys' softmax over the length.
  bool divided;
  float floor;
};

// Computes element `index` of [batch, heads, D, D].
template <int D, typename T>
LINSERVE_KERNEL void AddParts(const LinearAttentionArguments<T>& arguments, int64_t index) {
  const int column = static_cast<int>(index % D);
  const int feature = static_cast<int>(index / D % D);
  const int64_t head = index / D / D;  // of the batch
  const int length = arguments.key_lengths[head / arguments.heads];
  float log = kLogOfNothing;
  float mean = 0;
  const auto write = [&](int64_t part) {
    const int64_t row = part * D + feature;
    arguments.means_before[row * D + column] = mean;
    if (column == 0) arguments.logs_before[row] = log;
  };
  for (int part = 0; part * arguments.part_rows < length; ++part) {
    if (arguments.causal) write(head * arguments.parts + part);
    const int64_t row = (head * arguments.parts + part) * D + feature;
    const float more = arguments.logs[row];
    if (more == kLogOfNothing) continue;
    const float most = fmaxf(log, more);
    const float old_share = Exp2(log - most);
    const float new_share = Exp2(more - most);
    const float total = old_share + new_share;
    mean = (old_share * mean + new_share * arguments.means[row * D + column]) / total;
    log = most + Log2(total);
  }
  if (!arguments.causal) write(head);
}

}  // namespace linserve::cuda
