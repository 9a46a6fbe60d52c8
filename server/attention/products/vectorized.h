#pragma once

#include <ATen/Version.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace linserve {

// Loops over floats are compiled for each kind of vectors that the CPU may have. What they call
// must be inlined into them.

#define LINSERVE_INLINE [[gnu::always_inline]] inline

// A vector of so many floats, or of what has as many lanes. It is a type to be passed on, without
// members.
template <int64_t kCount>
struct VectorOf {
  static constexpr int64_t kLanes = kCount;
  using Floats [[gnu::vector_size(kCount * sizeof(float))]] = float;
  using Integers [[gnu::vector_size(kCount * sizeof(int32_t))]] = int32_t;
  using Bits [[gnu::vector_size(kCount * sizeof(uint32_t))]] = uint32_t;
};

// Returns what vectors the CPU has, by LibTorch's name. It is asked, so that
// ATEN_CPU_CAPABILITY=default|avx2|avx512 chooses here, too.
inline const std::string& CpuCapability() {
  static const std::string capability = at::get_cpu_capability();
  return capability;
}

#if defined(__x86_64__)
template <typename Function>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void WithAvx512(const Function& f) {
  f(VectorOf<16>());
}

template <typename Function>
[[gnu::target("avx2,fma")]] void WithAvx2(const Function& f) {
  f(VectorOf<8>());
}

// The function's loops are compiled for each kind of vectors, once it is inlined here. It is given
// the widest that the CPU computes with: of wider ones the compiler compares lane by lane.
template <typename Function>
void WithVectors(const Function& function) {
  static const bool avx512 = CpuCapability() == "AVX512";
  static const bool avx2 = CpuCapability() == "AVX2";
  if (avx512) {
    WithAvx512(function);
  } else if (avx2) {
    WithAvx2(function);
  } else {
    function(VectorOf<4>());
  }
}
#else
template <typename Function>
void WithVectors(const Function& function) {
  function(VectorOf<4>());
}
#endif

// Runs a function whose loops the compiler makes vectors of, compiled for each kind of them.
template <typename Function>
void Vectorized(const Function& function) {
  WithVectors([&](auto) __attribute__((always_inline)) { function(); });
}

// Calls body(j) for all columns, side by side.
template <typename Body>
LINSERVE_INLINE void ForColumns(int64_t width, const Body& body) {
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) body(j);
}

// Says how exactly functions are computed: to the last digits of F32, or to a tenth of what
// rounding to BF16 loses, where a number is rounded next, to that or to a byte.
enum class Digits : uint8_t { kF32, kToRound };

// Returns ((first · x + second) · x + third) · x + ..., of a float or a vector.
template <typename Float, typename... Coefficients>
LINSERVE_INLINE Float Polynomial(const Float& x, float first, Coefficients... others) {
  Float value = Float{} + first;
  ((value = value * x + others), ...);
  return value;
}

// Returns 2^x to 2e-8 of it, or 1e-4 where it is rounded next, for x in ±126, a float or a vector;
// elsewhere the result means nothing.
template <Digits kDigits = Digits::kF32, typename Float>
LINSERVE_INLINE Float Exp2(const Float& x) {
  constexpr int64_t kLanes = sizeof(Float) / sizeof(uint32_t);
  using Bits = std::conditional_t<kLanes == 1, uint32_t, typename VectorOf<kLanes>::Bits>;
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: its last bit is worth one
  const Float shifted = x + kRound;
  const Float f = x - (shifted - kRound);  // in ±0.5
  Float power;
  if constexpr (kDigits == Digits::kF32) {
    power = Polynomial(f, 0.000153458095F, 0.001339993090F, 0.009618489072F, 0.055503286421F,
                       0.240226462483F, 0.693147182465F, 1.0F);
  } else {
    power = Polynomial(f, 0.05517167F, 0.24261113F, 0.69326099F, 0.99992807F);
  }
  const Bits exponent = __builtin_bit_cast(Bits, shifted) << 23;
  return __builtin_bit_cast(Float, __builtin_bit_cast(Bits, power) + exponent);
}

// x·Φ(x) = max(x, 0) - |x|·Φ(-|x|), and log2 Φ(-a) is nearly a polynomial.
template <Digits kDigits = Digits::kF32>
LINSERVE_INLINE float Gelu(float x) {
  constexpr float kNothingLeft = 6.0F;  // 6·Φ(-6) = 6e-9
  const float a = std::fabs(x);
  float log;
  if constexpr (kDigits == Digits::kF32) {
    log = Polynomial(a, -1.95879943e-06F, 2.88159354e-05F, -1.35557377e-04F, -2.60703033e-04F,
                     7.22788926e-03F, -5.26128300e-02F, -4.59168345e-01F, -1.15111005e+00F, -1.0F);
  } else {
    log = Polynomial(a, -3.83866303e-04F, 6.42080302e-03F, -5.01757693e-02F, -4.61530784e-01F,
                     -1.15042215e+00F, -1.0F);
  }
  const float tail = a * Exp2<kDigits>(log);
  return (x > 0 ? x : 0.0F) - (a > kNothingLeft ? 0.0F : tail);
}

// Returns e^x, and 0 below e^-87.
template <Digits kDigits = Digits::kF32, typename Float>
LINSERVE_INLINE Float Exp(const Float& x) {
  constexpr float kLog2OfE = 1.44269504F;
  constexpr float kLowest = -126.0F;
  const Float power = x * kLog2OfE;
  return power < kLowest ? Float{} : Exp2<kDigits>(power);
}

// Returns 1 / (1 + e^-x).
LINSERVE_INLINE float Sigmoid(float x) {
  const float tail = Exp(-std::fabs(x));  // of a number of either sign it does not overflow
  return (x < 0 ? tail : 1.0F) / (1.0F + tail);
}

// Returns 2^x - 1, for x in [-126, 126]. Near 0 nothing of x is lost, as it is in a difference of
// numbers near 1.
LINSERVE_INLINE float Exp2Less1(float x) {
  constexpr float kRound = 12582912.0F;  // as in Exp2()
  const float shifted = x + kRound;
  const float f = x - (shifted - kRound);
  const float less = f * Polynomial(f, 0.000153458095F, 0.001339993090F, 0.009618489072F,
                                    0.055503286421F, 0.240226462483F, 0.693147182465F);
  const uint32_t exponent = __builtin_bit_cast(uint32_t, shifted) << 23;
  const float power = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, 1.0F) + exponent);
  return power * less + (power - 1.0F);
}

// Returns tanh(x) to 3e-7 of it.
LINSERVE_INLINE float Tanh(float x) {
  constexpr float kTwiceLog2OfE = 2.88539008F;
  constexpr float kLowest = -126.0F;
  const float power = -kTwiceLog2OfE * std::fabs(x);
  const float less = Exp2Less1(power < kLowest ? kLowest : power);
  return std::copysign(less / (2.0F + less), x);
}

// Returns x · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³))) / 2.
LINSERVE_INLINE float TanhGelu(float x) {
  constexpr float kTwiceRootOfTwoOverPi = 1.59576912F;
  constexpr float kCubic = 0.044715F;
  return x * Sigmoid(kTwiceRootOfTwoOverPi * (x + kCubic * x * x * x));
}

}  // namespace linserve
