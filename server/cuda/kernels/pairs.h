#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/kernels/lanes.h"

namespace linserve::cuda {

// These functions work on two numbers of 16 bits in one register, the first in its lower half. Each
// is an instruction or two, which the compiler would not find by itself.

template <typename T>
LINSERVE_KERNEL uint32_t Pack(float low, float high) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  uint32_t bits;
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  }
  return bits;
#else
  const T pair[2] = {T(low), T(high)};
  uint32_t bits;
  memcpy(&bits, pair, sizeof(bits));
  return bits;
#endif
}

template <typename T>
LINSERVE_KERNEL void Unpack(uint32_t bits, float (&pair)[2]) {
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    const uint32_t numbers[2] = {bits << 16, bits & 0xffff0000U};
    memcpy(pair, numbers, sizeof(pair));
  } else {
    T numbers[2];
    memcpy(numbers, &bits, sizeof(bits));
    for (int i = 0; i < 2; ++i) pair[i] = static_cast<float>(numbers[i]);
  }
}

// Returns the larger ones of the first and of the second numbers.
template <typename T>
LINSERVE_KERNEL uint32_t MaxOfPairs(uint32_t a, uint32_t b) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  uint32_t bits;
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    asm("max.bf16x2 %0, %1, %2;" : "=r"(bits) : "r"(a), "r"(b));
  } else {
    asm("max.f16x2 %0, %1, %2;" : "=r"(bits) : "r"(a), "r"(b));
  }
  return bits;
#else
  float left[2];
  float right[2];
  Unpack<T>(a, left);
  Unpack<T>(b, right);
  return Pack<T>(fmaxf(left[0], right[0]), fmaxf(left[1], right[1]));
#endif
}

// Is a pair of the number that is less than all others.
template <typename T>
inline constexpr uint32_t kLeastPair = std::is_same_v<T, c10::BFloat16> ? 0xff80ff80U : 0xfc00fc00U;

// Is a pair of ones.
template <typename T>
inline constexpr uint32_t kPairOfOnes =
    std::is_same_v<T, c10::BFloat16> ? 0x3f803f80U : 0x3c003c00U;

// Stores two numbers to shared memory.
template <typename T>
LINSERVE_KERNEL void StorePair(T* to, float low, float high) {
  const uint32_t bits = Pack<T>(low, high);
#if defined(__CUDACC__)
  *reinterpret_cast<uint32_t*>(to) = bits;
#else
  std::memcpy(to, &bits, sizeof(bits));
#endif
}

}  // namespace linserve::cuda
