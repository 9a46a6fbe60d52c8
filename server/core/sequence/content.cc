#include "core/sequence/content.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/strings/quote.h"

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

// Returns whether any of `count` floats of that width has a magnitude of at least `infinity`, NaN
// being above it. It compares bits and has no branch, so that the compiler makes vector
// instructions of it whatever the float type.
template <typename Bits>
bool AnyNonfinite(const std::byte* source, int64_t count, Bits infinity) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  Bits found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, source + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    found = static_cast<Bits>(found | ((bits & kMagnitude) >= infinity));
  }
  return found != 0;
}

// Returns the bits of the least number of a type that rounds to an infinity in another. F64 is
// rounded to F32 first.
uint64_t InfinityOf(DType dtype, DType read_as) {
  const bool half = read_as == DType::kF16;
  const bool brain = read_as == DType::kBF16;
  switch (dtype) {
    case DType::kF16:
      return 0x7c00;
    case DType::kBF16:
      return half ? 0x4780 : 0x7f80;
    case DType::kF64:
      return half ? 0x40effdfff0000000 : brain ? 0x47efeffff0000000 : 0x47effffff0000000;
    default:
      return half ? 0x477ff000 : brain ? 0x7f7f8000 : 0x7f800000;
  }
}

bool AnyNonfinite(DType dtype, const std::byte* source, int64_t count, uint64_t infinity) {
  switch (ByteSize(dtype)) {
    case 2:
      return AnyNonfinite(source, count, static_cast<uint16_t>(infinity));
    case 4:
      return AnyNonfinite(source, count, static_cast<uint32_t>(infinity));
    default:
      return AnyNonfinite(source, count, infinity);
  }
}

std::string NonfiniteName(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isfinite(value)) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%g", double{value});
    return text.data();
  }
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
      return dtype == DType::kBool || IsInteger(dtype);
    case InputKind::kAttentionMask:
      return dtype == DType::kBool || IsFloat(dtype);
  }
  return false;
}

std::optional<Fault> FindNonfinite(const Tensor& tensor, DType read_as) {
  const DType dtype = tensor.dtype();
  const uint64_t infinity = InfinityOf(dtype, read_as);
  const auto find = [&](const std::byte* block, int64_t count) -> std::optional<FaultInBlock> {
    if (!AnyNonfinite(dtype, block, count, infinity)) return std::nullopt;
    const auto size = static_cast<int64_t>(ByteSize(dtype));
    int64_t index = 0;
    while (!AnyNonfinite(dtype, block + index * size, 1, infinity)) ++index;
    float value = 0;
    ConvertToFloat(dtype, block + index * size, 1, &value);
    return FaultInBlock{index, NonfiniteName(value)};
  };
  return FirstFault(tensor, find);
}

absl::Status CheckFinite(const TensorMap& outputs) {
  for (const auto& [name, tensor] : outputs) {
    if (!IsFloat(tensor.dtype())) continue;
    const auto fault = FindNonfinite(tensor);
    if (!fault) continue;
    const bool half = tensor.dtype() == DType::kF16 && fault->value != "NaN";
    return absl::OutOfRangeError(
        "output " + Quoted(name) + ": it holds " + fault->value + " at position " +
        ToString(fault->position) +
        (half ? " in F16, which holds at most 65504; ask for F32 or BF16"
              : "; the model's numbers overflow for this input (`linserve inspect --verify` shows "
                "whether they do so for any)"));
  }
  return absl::OkStatus();
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
