#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/dtype.h"

namespace linserve {

using Shape = std::vector<int64_t>;

// Returns the number of elements of a shape; 1 for a scalar. REQUIRES: CheckedElementCount() has a
// value.
int64_t ElementCount(const Shape& shape);

// Counts the elements of a shape that came from outside: nullopt if a size is negative or the
// product of the sizes, zeros left out, does not fit into int64. Thus no partial product overflows
// either.
std::optional<int64_t> CheckedElementCount(const Shape& shape);

// Returns the bytes of a tensor; nullopt if the elements cannot be counted or their bytes overflow
// int64.
std::optional<int64_t> CheckedByteSize(DType dtype, const Shape& shape);

// Writes "[3, 64]"; a shape of very many axes is cut short.
std::string ToString(const Shape& shape);

// Holds a dense row-major tensor in host memory: a value that shares its immutable bytes with its
// copies. The bytes may belong to anything that `owner` keeps alive: a vector, a received message,
// a LibTorch tensor. Copying a Tensor never copies its bytes.
class Tensor {
 public:
  Tensor() = default;

  // Views `bytes` of `owner`. REQUIRES: they hold ElementCount(shape) * ByteSize(dtype) bytes.
  Tensor(DType dtype, Shape shape, const void* bytes, std::shared_ptr<const void> owner);

  // Returns a new zero-filled tensor and where to write its bytes, before it is shared. A shape
  // whose bytes int64 cannot count throws std::bad_alloc, as one does that is larger than the
  // memory.
  static std::pair<Tensor, std::byte*> Allocate(DType dtype, Shape shape);
  // Returns a new tensor whose bytes hold nothing yet, and where to write them: for a caller that
  // writes all of them.
  static std::pair<Tensor, std::byte*> AllocateUnfilled(DType dtype, Shape shape);

  // Copies `values`, whose number must be ElementCount(shape).
  static Tensor FromFloats(Shape shape, const std::vector<float>& values);
  static Tensor FromInts(Shape shape, const std::vector<int64_t>& values);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return ElementCount(shape_); }
  size_t byte_size() const { return static_cast<size_t>(elements()) * ByteSize(dtype_); }
  const std::byte* bytes() const { return bytes_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Returns the elements as T. REQUIRES: T is the C++ type of dtype() and the bytes are aligned for
  // it.
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes());
  }

  // Copies all byte_size() bytes.
  void CopyTo(std::byte* target) const;

  // Returns rows [begin, end) of the first axis, sharing the bytes. REQUIRES: a first axis that
  // long.
  Tensor Rows(int64_t begin, int64_t end) const;

  // Returns the same bytes under another shape of as many elements, or as elements of another type.
  // REQUIRES: they are as many bytes.
  Tensor Reshaped(Shape shape) const;
  Tensor As(DType dtype, Shape shape) const;

 private:
  DType dtype_ = DType::kF32;
  Shape shape_ = {0};
  const std::byte* bytes_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// Makes a tensor in host memory of some kind. Its caller writes all of the bytes before the tensor
// is shared.
using TensorAllocator = std::function<std::pair<Tensor, std::byte*>(DType, Shape)>;

// Holds tensors by name, in the order of their names.
using TensorMap = std::map<std::string, Tensor>;

// Converts `count` elements of any type to float or int64; the bytes may be unaligned.
void ConvertToFloat(DType dtype, const std::byte* source, int64_t count, float* target);
void ConvertToInt64(DType dtype, const std::byte* source, int64_t count, int64_t* target);
void ConvertToFloat(const Tensor& tensor, float* target);  // all elements
void ConvertToInt64(const Tensor& tensor, int64_t* target);

// Returns a copy converted to `dtype`: floats to floats, integers and BOOL among each other,
// INVALID_ARGUMENT otherwise. Integers keep their low bits; as BOOL, any but 0 becomes true.
absl::StatusOr<Tensor> Convert(const Tensor& tensor, DType dtype);

}  // namespace linserve
