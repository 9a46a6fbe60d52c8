#include "core/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/status/status.h"

namespace linserve {
namespace {

// Reads one element of a possibly unaligned array.
template <typename T>
T LoadAt(const std::byte* source, int64_t index) {
  T value;
  std::memcpy(&value, source + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T, typename Target>
void ConvertAll(const std::byte* source, int64_t count, Target* target) {
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): an I8 is a number, not a character
  for (int64_t i = 0; i < count; ++i) target[i] = static_cast<Target>(LoadAt<T>(source, i));
}

template <typename Target>
void ConvertTo(DType dtype, const std::byte* source, int64_t count, Target* target) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return ConvertAll<uint8_t>(source, count, target);
    case DType::kI8:
      return ConvertAll<int8_t>(source, count, target);
    case DType::kI16:
      return ConvertAll<int16_t>(source, count, target);
    case DType::kI32:
      return ConvertAll<int32_t>(source, count, target);
    case DType::kI64:
      return ConvertAll<int64_t>(source, count, target);
    case DType::kF16:
      for (int64_t i = 0; i < count; ++i) {
        target[i] = static_cast<Target>(HalfToFloat(LoadAt<uint16_t>(source, i)));
      }
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < count; ++i) {
        target[i] = static_cast<Target>(BFloat16ToFloat(LoadAt<uint16_t>(source, i)));
      }
      return;
    case DType::kF32:
      return ConvertAll<float>(source, count, target);
    case DType::kF64:
      return ConvertAll<double>(source, count, target);
  }
}

template <typename T>
void StoreAt(std::byte* target, int64_t index, T value) {
  std::memcpy(target + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

void StoreFloats(const std::vector<float>& values, DType dtype, std::byte* target) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    switch (dtype) {
      case DType::kF16:
        StoreAt(target, at, FloatToHalf(values[i]));
        break;
      case DType::kBF16:
        StoreAt(target, at, FloatToBFloat16(values[i]));
        break;
      case DType::kF64:
        StoreAt(target, at, static_cast<double>(values[i]));
        break;
      default:
        StoreAt(target, at, values[i]);
    }
  }
}

void StoreInts(const std::vector<int64_t>& values, DType dtype, std::byte* target) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    switch (dtype) {
      case DType::kBool:
        StoreAt(target, at, static_cast<uint8_t>(values[i] != 0));
        break;
      case DType::kU8:
      case DType::kI8:
        StoreAt(target, at, static_cast<uint8_t>(values[i]));
        break;
      case DType::kI16:
        StoreAt(target, at, static_cast<uint16_t>(values[i]));
        break;
      case DType::kI32:
        StoreAt(target, at, static_cast<uint32_t>(values[i]));
        break;
      default:
        StoreAt(target, at, values[i]);
    }
  }
}

}  // namespace

int64_t ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

std::optional<int64_t> CheckedElementCount(const Shape& shape) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, size, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

std::optional<int64_t> CheckedByteSize(DType dtype, const Shape& shape) {
  const std::optional<int64_t> count = CheckedElementCount(shape);
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, static_cast<int64_t>(ByteSize(dtype)), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

std::string ToString(const Shape& shape) {
  constexpr size_t kShown = 16;
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    if (i == kShown) return text + "... of " + std::to_string(shape.size()) + " axes]";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Tensor::Tensor(DType dtype, Shape shape, const void* bytes, std::shared_ptr<const void> owner)
    : dtype_(dtype),
      shape_(std::move(shape)),
      bytes_(static_cast<const std::byte*>(bytes)),
      owner_(std::move(owner)) {}

std::pair<Tensor, std::byte*> Tensor::Allocate(DType dtype, Shape shape) {
  auto allocated = AllocateUnfilled(dtype, std::move(shape));
  std::fill_n(allocated.second, allocated.first.byte_size(), std::byte{0});
  return allocated;
}

std::pair<Tensor, std::byte*> Tensor::AllocateUnfilled(DType dtype, Shape shape) {
  const std::optional<int64_t> size = CheckedByteSize(dtype, shape);
  if (!size) throw std::bad_alloc();
  std::shared_ptr<std::byte[]> storage(new std::byte[static_cast<size_t>(*size)]);
  std::byte* bytes = storage.get();
  return {Tensor(dtype, std::move(shape), bytes, std::move(storage)), bytes};
}

Tensor Tensor::FromFloats(Shape shape, const std::vector<float>& values) {
  auto [tensor, bytes] = Allocate(DType::kF32, std::move(shape));
  if (!values.empty()) std::memcpy(bytes, values.data(), tensor.byte_size());
  return tensor;
}

Tensor Tensor::FromInts(Shape shape, const std::vector<int64_t>& values) {
  auto [tensor, bytes] = Allocate(DType::kI64, std::move(shape));
  if (!values.empty()) std::memcpy(bytes, values.data(), tensor.byte_size());
  return tensor;
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  const size_t row_bytes = shape_[0] == 0 ? 0 : byte_size() / static_cast<size_t>(shape_[0]);
  Tensor rows = *this;
  rows.shape_[0] = end - begin;
  rows.bytes_ += static_cast<size_t>(begin) * row_bytes;
  return rows;
}

Tensor Tensor::Reshaped(Shape shape) const { return As(dtype_, std::move(shape)); }

Tensor Tensor::As(DType dtype, Shape shape) const {
  Tensor same = *this;
  same.dtype_ = dtype;
  same.shape_ = std::move(shape);
  return same;
}

void Tensor::CopyTo(std::byte* target) const { std::copy_n(bytes_, byte_size(), target); }

void ConvertToFloat(DType dtype, const std::byte* source, int64_t count, float* target) {
  if (dtype == DType::kF32) {
    if (count > 0) std::memcpy(target, source, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  ConvertTo(dtype, source, count, target);
}

void ConvertToInt64(DType dtype, const std::byte* source, int64_t count, int64_t* target) {
  ConvertTo(dtype, source, count, target);
}

void ConvertToFloat(const Tensor& tensor, float* target) {
  ConvertToFloat(tensor.dtype(), tensor.bytes(), tensor.elements(), target);
}

void ConvertToInt64(const Tensor& tensor, int64_t* target) {
  ConvertToInt64(tensor.dtype(), tensor.bytes(), tensor.elements(), target);
}

absl::StatusOr<Tensor> Convert(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  if (IsFloat(tensor.dtype()) != IsFloat(dtype)) {
    return absl::InvalidArgumentError("cannot convert " + std::string(Name(tensor.dtype())) +
                                      " to " + std::string(Name(dtype)));
  }
  auto [result, bytes] = Tensor::Allocate(dtype, tensor.shape());
  const auto count = static_cast<size_t>(tensor.elements());
  if (IsFloat(dtype)) {
    std::vector<float> values(count);
    ConvertToFloat(tensor, values.data());
    StoreFloats(values, dtype, bytes);
  } else {
    std::vector<int64_t> values(count);
    ConvertToInt64(tensor, values.data());
    StoreInts(values, dtype, bytes);
  }
  return result;
}

}  // namespace linserve
