#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace linserve {

// Lists the element types of tensors on the wire, in files and in batches. All are little-endian.
enum class DType : uint8_t { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

// Returns the bytes of one element.
size_t ByteSize(DType dtype);

// Returns the name that safetensors uses: "BOOL", "U8", ..., "F32", "F64".
std::string_view Name(DType dtype);

// Inverts Name(); nullopt for a name of no element type.
std::optional<DType> DTypeFromName(std::string_view name);

bool IsFloat(DType dtype);
bool IsInteger(DType dtype);  // false for kBool

// These functions convert IEEE binary16 and bfloat16 (the upper half of a binary32) to and from
// binary32. Conversions to the smaller type round to nearest, ties to even. They choose among
// results rather than branch, so that loops over them become vector instructions.
float HalfToFloat(uint16_t bits);
float BFloat16ToFloat(uint16_t bits);

inline uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // A subnormal has units of 2^-24. Adding 0.5 aligns the last mantissa bit with them, so that the
  // addition itself rounds.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;  // rounds past 65504
  result = magnitude > 0x7f800000u ? 0x7e00u : result;   // NaN
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | result);
}

inline uint16_t FloatToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<uint16_t>((nan ? bits | 0x400000u : rounded) >> 16);
}

}  // namespace linserve
