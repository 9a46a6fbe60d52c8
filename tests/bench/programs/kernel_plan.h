#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/kernels/linear_attention_block.h"
#include "cuda/kernels/project_length.h"
#include "cuda/kernels/softmax_attention.h"

namespace linserve {

// Says what a kernel asks of memory by its tiles, where the L2 cache may answer, beside what it
// must move at the least, which is what comes from memory if the cache answers all else.
struct KernelPlan {
  std::string name;
  double asked;  // bytes that its blocks load and store
  double floor;  // bytes of its inputs and its result
  double flops;
};

// Plans packed sequences of `length` rows, `rows` in all, in BF16.
inline std::vector<KernelPlan> PlansOf(int64_t rows, int64_t length, int64_t heads,
                                       int64_t dim_head, int64_t slots) {
  using Number = c10::BFloat16;
  const auto tiles = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile; };
  const auto bytes = [](int64_t numbers) { return 2.0 * static_cast<double>(numbers); };
  const int64_t sequences = rows / length;
  const int64_t width = heads * dim_head;
  std::vector<KernelPlan> plans;

  using Project = cuda::ProjectLength<Number>;
  const int64_t across = tiles(width, Project::kTileWidth);
  const int64_t down = tiles(slots, Project::kTileSlots);
  const int64_t slots_and_result = sequences * slots * width;
  plans.push_back({"project_length",
                   bytes(rows * (across * down * (Project::kTileWidth + Project::kTileSlots)) +
                         slots_and_result),
                   bytes(rows * width + length * slots + slots_and_result),
                   2.0 * static_cast<double>(rows) * static_cast<double>(slots * width)});

  using Attend = cuda::SoftmaxAttention<Number, 64, false>;
  const int64_t query_tiles = sequences * tiles(length, Attend::kTile);
  plans.push_back({"attend_to_slots", bytes(2 * rows * width + query_tiles * 2 * slots * width),
                   bytes(2 * rows * width + 2 * slots_and_result),
                   4.0 * static_cast<double>(rows) * static_cast<double>(slots * width)});

  plans.push_back({"softmax_attention", bytes(2 * rows * width + query_tiles * 2 * length * width),
                   bytes(4 * rows * width),
                   4.0 * static_cast<double>(rows) * static_cast<double>(length * width)});

  // A block has all features of a head and its own columns of the values.
  const int64_t splits = cuda::LinearAttentionBlock<Number, 64>::kSplits;
  const int64_t linear = rows * width * (2 * splits + 2);
  for (const bool causal : {false, true}) {
    plans.push_back(
        {causal ? "linear_attention/causal" : "linear_attention", bytes(linear),
         bytes(4 * rows * width),
         (causal ? 8.0 : 4.0) * static_cast<double>(rows * width) * static_cast<double>(dim_head)});
  }

  // The table is of F32.
  plans.push_back({"add_positions", bytes(4 * rows * width),
                   bytes(2 * rows * width + 2 * length * width),
                   static_cast<double>(rows * width)});
  // Each row meets a weight, a bias and what rows lack, which are the same for all and stay in the
  // multiprocessors' own caches.
  plans.push_back({"norm", bytes(2 * rows * width), bytes(2 * rows * width + 3 * width),
                   8.0 * static_cast<double>(rows * width)});
  plans.push_back({"pool", bytes(rows * width) + 4.0 * static_cast<double>(sequences * width),
                   bytes(rows * width) + 4.0 * static_cast<double>(sequences * width),
                   static_cast<double>(rows * width)});
  return plans;
}

// Prints the plans of sequences of this length, and the time that an H100 takes for each floor.
inline void PrintPlans(int64_t rows, int64_t length, int64_t heads, int64_t dim_head,
                       int64_t slots) {
  constexpr double kBytesPerMicrosecond = 3.0e6;
  constexpr double kFlopsPerMicrosecond = 8.0e8;
  std::printf("%lld rows in sequences of %lld\n%-26s %12s %12s %7s %9s %9s\n",
              static_cast<long long>(rows), static_cast<long long>(length), "kernel", "MB asked",
              "MB floor", "times", "us bytes", "us FLOPs");
  for (const KernelPlan& plan : PlansOf(rows, length, heads, dim_head, slots)) {
    std::printf("%-26s %12.1f %12.1f %7.2f %9.1f %9.1f\n", plan.name.c_str(), plan.asked / 1e6,
                plan.floor / 1e6, plan.asked / plan.floor, plan.floor / kBytesPerMicrosecond,
                plan.flops / kFlopsPerMicrosecond);
  }
}

}  // namespace linserve
