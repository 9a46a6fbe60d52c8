#pragma once

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
// binary32. Conversions to the smaller type round to nearest, ties to even.
float HalfToFloat(uint16_t bits);
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
uint16_t FloatToBFloat16(float value);

}  // namespace linserve
