#include "core/tensor/dtype.h"

#include <array>
#include <bit>
#include <utility>

namespace linserve {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  size_t bytes;
};

constexpr std::array<DTypeRow, 10> kRows = {{
    {DType::kBool, "BOOL", 1},
    {DType::kU8, "U8", 1},
    {DType::kI8, "I8", 1},
    {DType::kI16, "I16", 2},
    {DType::kI32, "I32", 4},
    {DType::kI64, "I64", 8},
    {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},
    {DType::kF32, "F32", 4},
    {DType::kF64, "F64", 8},
}};

const DTypeRow& Row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

size_t ByteSize(DType dtype) { return Row(dtype).bytes; }

std::string_view Name(DType dtype) { return Row(dtype).name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DTypeRow& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

bool IsFloat(DType dtype) { return dtype >= DType::kF16; }

bool IsInteger(DType dtype) { return dtype != DType::kBool && !IsFloat(dtype); }

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24 is exact in binary32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace linserve
