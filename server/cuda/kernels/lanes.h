#pragma once

// This is the programming model of our kernels: a block of warps of 32 lanes, in phases between
// which all wait for each other. The same code is a kernel for a GPU and, without nvcc, an ordinary
// function that goes through warps and lanes one after the other: so its arithmetic and its indices
// are tested on the CPU.

#if defined(__CUDACC__)
#define LINSERVE_KERNEL __device__ __forceinline__
// Unrolls loops whose counter chooses among registers.
#define LINSERVE_UNROLL _Pragma("unroll")
#else
#define LINSERVE_KERNEL inline
#define LINSERVE_UNROLL
#include <array>
#include <cmath>
#endif

namespace linserve::cuda {

inline constexpr int kLanes = 32;

#if !defined(__CUDACC__)
// Says whether the CPU goes through warps and lanes of a phase from the last to the first: what
// they share and do not wait for is then not there yet, or there too soon.
inline thread_local bool last_first = false;
#endif

// Holds a value of each lane of a warp: on a GPU a register of the lane's own.
#if defined(__CUDACC__)
template <typename T>
struct PerLane {
  T value;
  LINSERVE_KERNEL T& operator[](int /*lane*/) { return value; }
  LINSERVE_KERNEL const T& operator[](int /*lane*/) const { return value; }
};
#else
template <typename T>
using PerLane = std::array<T, kLanes>;
#endif

template <typename Function>
LINSERVE_KERNEL void ForLanes(const Function& function) {
#if defined(__CUDACC__)
  function(static_cast<int>(threadIdx.x) % kLanes);
#else
  for (int lane = 0; lane < kLanes; ++lane) function(last_first ? kLanes - 1 - lane : lane);
#endif
}

// Lets a warp's lanes see what others of them have written to shared memory.
LINSERVE_KERNEL void SyncLanes() {
#if defined(__CUDACC__)
  __syncwarp();
#endif
}

// Holds a value of each warp of a block that lives through several phases.
#if defined(__CUDACC__)
template <typename T, int kWarps>
struct PerWarp {
  T value;
  LINSERVE_KERNEL T& operator[](int /*warp*/) { return value; }
};
#else
template <typename T, int kWarps>
using PerWarp = std::array<T, kWarps>;
#endif

// Is one phase: it calls function(warp) for each warp of the block, which then waits for all
// others.
template <int kWarps, typename Function>
LINSERVE_KERNEL void ForWarps(const Function& function) {
#if defined(__CUDACC__)
  function(static_cast<int>(threadIdx.x) / kLanes);
  __syncthreads();
#else
  for (int warp = 0; warp < kWarps; ++warp) function(last_first ? kWarps - 1 - warp : warp);
#endif
}

inline constexpr float kLog2OfE = 1.44269504F;

// These are exact to some 22 bits; what is no normal number is 0.
LINSERVE_KERNEL float Exp2(float x) {
#if defined(__CUDACC__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}
LINSERVE_KERNEL float Log2(float x) {
#if defined(__CUDACC__)
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return log2f(x);
#endif
}

LINSERVE_KERNEL float Reciprocal(float x) {
#if defined(__CUDACC__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}

LINSERVE_KERNEL float ReciprocalRoot(float x) {
#if defined(__CUDACC__)
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / sqrtf(x);
#endif
}

// Gives every lane combine() over those of its group of kGroup lanes that are the same as it modulo
// kStride. Both are powers of two.
template <int kStride, int kGroup = kLanes, typename T, typename Combine>
LINSERVE_KERNEL void OverLanes(PerLane<T>& values, const Combine& combine) {
  LINSERVE_UNROLL
  for (int step = kStride; step < kGroup; step *= 2) {
#if defined(__CUDACC__)
    values.value = combine(values.value, __shfl_xor_sync(0xffffffffU, values.value, step));
#else
    const PerLane<T> before = values;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      values[lane] = combine(before[lane], before[lane ^ static_cast<size_t>(step)]);
    }
#endif
  }
}

// Says where a block stands in its grid.
struct BlockIndex {
  int x;
  int y;
  int z;
};

}  // namespace linserve::cuda
