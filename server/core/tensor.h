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
#include "core/dtype.h"
#include "core/pieces.h"

namespace linserve {

using Shape = std::vector<int64_t>;

// The number of elements of a shape; 1 for a scalar. REQUIRES: CheckedElementCount() has a value.
int64_t ElementCount(const Shape& shape);

// The same of a shape from outside: nullopt if a size is negative or the product of the sizes,
// zeros left out, does not fit into int64. Thus no partial product overflows either.
std::optional<int64_t> CheckedElementCount(const Shape& shape);

// Bytes of a tensor; nullopt if the elements cannot be counted or their bytes overflow int64.
std::optional<int64_t> CheckedByteSize(DType dtype, const Shape& shape);

// "[3, 64]"; a shape of very many axes is cut short.
std::string ToString(const Shape& shape);

// A dense row-major tensor in host memory: a value that shares its immutable bytes with its
// copies. The bytes may belong to anything that `owner` keeps alive: a vector, a mapped file, a
// received message, a LibTorch tensor; and they may lie in pieces, which are joined where somebody
// wants them as one. Copying a Tensor never copies its bytes.
class Tensor {
 public:
  Tensor() = default;

  // Views `bytes` of `owner`. REQUIRES: they hold ElementCount(shape) * ByteSize(dtype) bytes.
  Tensor(DType dtype, Shape shape, const void* bytes, std::shared_ptr<const void> owner);

  // Views the bytes in pieces. REQUIRES: they are as many.
  Tensor(DType dtype, Shape shape, std::shared_ptr<const Pieces> pieces);

  // A new zero-filled tensor and where to write its bytes, before it is shared.
  static std::pair<Tensor, std::byte*> Allocate(DType dtype, Shape shape);
  // The same without the zeros, for who writes all of it.
  static std::pair<Tensor, std::byte*> AllocateUnfilled(DType dtype, Shape shape);

  // Copies `values`, whose number must be ElementCount(shape).
  static Tensor FromFloats(Shape shape, const std::vector<float>& values);
  static Tensor FromInts(Shape shape, const std::vector<int64_t>& values);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return ElementCount(shape_); }
  size_t byte_size() const { return static_cast<size_t>(elements()) * ByteSize(dtype_); }
  bool in_pieces() const { return pieces_ != nullptr; }
  // Those of a tensor in pieces are joined, by a copy, at the first call.
  const std::byte* bytes() const {
    return pieces_ == nullptr ? bytes_ : pieces_->Joined() + offset_;
  }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // The elements as T. REQUIRES: T is the C++ type of dtype() and the bytes are aligned for it.
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes());
  }

  // Visits all elements in order, which joins no pieces.
  void ForRuns(VisitRun visit) const;

  // Copies byte_size() bytes.
  void CopyTo(std::byte* target) const;

  // Rows [begin, end) of the first axis, sharing the bytes. REQUIRES: a first axis that long.
  Tensor Rows(int64_t begin, int64_t end) const;

  // The same bytes under another shape of as many elements, or as elements of another type.
  // REQUIRES: they are as many bytes.
  Tensor Reshaped(Shape shape) const;
  Tensor As(DType dtype, Shape shape) const;

 private:
  DType dtype_ = DType::kF32;
  Shape shape_ = {0};
  const std::byte* bytes_ = nullptr;
  const Pieces* pieces_ = nullptr;  // instead of bytes_; then they are the owner
  size_t offset_ = 0;               // in the pieces
  std::shared_ptr<const void> owner_;
};

// Makes a tensor whose bytes the caller writes, all of them, before it is shared: in host memory of
// some kind.
using TensorAllocator = std::function<std::pair<Tensor, std::byte*>(DType, Shape)>;

// Tensors by name, in the order of their names.
using TensorMap = std::map<std::string, Tensor>;

// Converts any element type to float or int64, reading unaligned bytes too; `count` elements.
void ConvertToFloat(DType dtype, const std::byte* source, int64_t count, float* target);
void ConvertToInt64(DType dtype, const std::byte* source, int64_t count, int64_t* target);
void ConvertToFloat(const Tensor& tensor, float* target);  // all elements
void ConvertToInt64(const Tensor& tensor, int64_t* target);

// A copy converted to `dtype` (floats to floats, integers and BOOL among each other;
// INVALID_ARGUMENT else). Integers keep their low bits; any but 0 becomes true.
absl::StatusOr<Tensor> Convert(const Tensor& tensor, DType dtype);

}  // namespace linserve
