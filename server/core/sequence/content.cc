#include "core/sequence/content.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace linserve {
namespace {

constexpr int64_t kBlock = 1024;

// Returns the row-major position of an element. REQUIRES: index < ElementCount(shape).
Shape PositionOf(const Shape& shape, int64_t index) {
  Shape position(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return position;
}

// Returns whether any of `count` floats of that width has a magnitude of at least `kInfinity`, NaN
// being above it. It compares bits and has no branch, so that the compiler makes vector
// instructions of it whatever the float type.
template <typename Bits, Bits kInfinity>
bool AnyNonfinite(const std::byte* source, int64_t count) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  Bits found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, source + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    found = static_cast<Bits>(found | ((bits & kMagnitude) >= kInfinity));
  }
  return found != 0;
}

bool AnyNonfinite(DType dtype, const std::byte* source, int64_t count) {
  switch (dtype) {
    case DType::kF16:
      return AnyNonfinite<uint16_t, 0x7c00u>(source, count);
    case DType::kBF16:
      return AnyNonfinite<uint16_t, 0x7f80u>(source, count);
    case DType::kF64:  // this is the least double that rounds to the infinity of F32
      return AnyNonfinite<uint64_t, 0x47effffff0000000u>(source, count);
    default:
      return AnyNonfinite<uint32_t, 0x7f800000u>(source, count);
  }
}

std::string NonfiniteName(float value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Inf" : "-Inf";
}

// Describes an element of a block that must not be there.
struct FaultInBlock {
  int64_t index;
  std::string value;
};

// Returns the first fault that find(block, count) returns, called for blocks of at most kBlock
// elements.
template <typename Find>
std::optional<Fault> FirstFault(const Tensor& tensor, const Find& find) {
  const auto size = static_cast<int64_t>(ByteSize(tensor.dtype()));
  const int64_t elements = tensor.elements();
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const std::optional<FaultInBlock> fault =
        find(tensor.bytes() + begin * size, std::min(kBlock, elements - begin));
    if (fault) return Fault{PositionOf(tensor.shape(), begin + fault->index), fault->value};
  }
  return std::nullopt;
}

}  // namespace

bool Takes(InputKind kind, DType dtype) {
  switch (kind) {
    case InputKind::kFloat:
      return IsFloat(dtype);
    case InputKind::kToken:
      return IsInteger(dtype);
    case InputKind::kMask:
      return dtype == DType::kBool;
    case InputKind::kAttentionMask:
      return dtype == DType::kBool || IsFloat(dtype);
  }
  return false;
}

std::optional<Fault> FindNonfinite(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  const auto find = [&](const std::byte* block, int64_t count) -> std::optional<FaultInBlock> {
    if (!AnyNonfinite(dtype, block, count)) return std::nullopt;
    const auto size = static_cast<int64_t>(ByteSize(dtype));
    int64_t index = 0;
    while (!AnyNonfinite(dtype, block + index * size, 1)) ++index;
    float value = 0;
    ConvertToFloat(dtype, block + index * size, 1, &value);
    return FaultInBlock{index, NonfiniteName(value)};
  };
  return FirstFault(tensor, find);
}

std::optional<Fault> FindNoScore(const Tensor& tensor) {
  const auto find = [&](const std::byte* block, int64_t count) -> std::optional<FaultInBlock> {
    std::array<float, kBlock> values;
    ConvertToFloat(tensor.dtype(), block, count, values.data());
    const auto* fault = std::find_if(values.begin(), values.begin() + count, [](float value) {
      return std::isnan(value) || (std::isinf(value) && value > 0);
    });
    if (fault == values.begin() + count) return std::nullopt;
    return FaultInBlock{fault - values.begin(), NonfiniteName(*fault)};
  };
  return FirstFault(tensor, find);
}

std::optional<Fault> FindOutside(const Tensor& tensor, int64_t limit) {
  const auto find = [&](const std::byte* block, int64_t count) -> std::optional<FaultInBlock> {
    std::array<int64_t, kBlock> values;
    ConvertToInt64(tensor.dtype(), block, count, values.data());
    const auto* fault = std::find_if(values.begin(), values.begin() + count,
                                     [&](int64_t value) { return value < 0 || value >= limit; });
    if (fault == values.begin() + count) return std::nullopt;
    return FaultInBlock{fault - values.begin(), std::to_string(*fault)};
  };
  return FirstFault(tensor, find);
}

}  // namespace linserve
