#include "core/tensor/stacking.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace linserve {
namespace {

// Copies the corner `box` of one tensor into that of another; one of them is just as large.
void CopyCorner(const int64_t* box, const std::byte* source, const int64_t* source_shape,
                std::byte* target, const int64_t* target_shape, size_t axes, size_t element_bytes) {
  if (axes == 0) {
    std::memcpy(target, source, element_bytes);
    return;
  }
  size_t source_bytes = element_bytes;  // bytes of a row
  size_t target_bytes = element_bytes;
  for (size_t axis = 1; axis < axes; ++axis) {
    source_bytes *= static_cast<size_t>(source_shape[axis]);
    target_bytes *= static_cast<size_t>(target_shape[axis]);
  }
  if (source_bytes == target_bytes) {  // no axis differs here, so that the rows are alike
    std::memcpy(target, source, source_bytes * static_cast<size_t>(box[0]));
    return;
  }
  for (int64_t row = 0; row < box[0]; ++row) {
    CopyCorner(box + 1, source, source_shape + 1, target, target_shape + 1, axes - 1,
               element_bytes);
    source += source_bytes;
    target += target_bytes;
  }
}

// Returns whether the parts are all of this shape, and lie one after another.
bool Adjoin(const std::vector<const Tensor*>& parts, const Shape& shape) {
  const std::byte* place = parts[0]->bytes();
  return std::all_of(parts.begin(), parts.end(), [&](const Tensor* part) {
    const bool follows =
        part->shape() == shape && part->bytes() == place && part->owner() == parts[0]->owner();
    place += part->byte_size();
    return follows;
  });
}

}  // namespace

Shape StackedShape(const std::vector<const Tensor*>& parts, int64_t longest) {
  Shape largest = parts[0]->shape();
  if (!largest.empty()) largest[0] = std::max(largest[0], longest);
  for (const Tensor* part : parts) {
    for (size_t axis = 0; axis < largest.size(); ++axis) {
      largest[axis] = std::max(largest[axis], part->shape()[axis]);
    }
  }
  largest.insert(largest.begin(), static_cast<int64_t>(parts.size()));
  return largest;
}

Tensor Stack(const std::vector<const Tensor*>& parts, int64_t longest) {
  const Shape shape = StackedShape(parts, longest);
  const Shape largest(shape.begin() + 1, shape.end());
  if (Adjoin(parts, largest)) {
    return Tensor(parts[0]->dtype(), shape, parts[0]->bytes(), parts[0]->owner());
  }
  auto [tensor, bytes] = Tensor::Allocate(parts[0]->dtype(), shape);
  const size_t stride = tensor.byte_size() / parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t* box = parts[i]->shape().data();
    CopyCorner(box, parts[i]->bytes(), box, bytes + i * stride, largest.data(), largest.size(),
               ByteSize(tensor.dtype()));
  }
  return tensor;
}

Tensor Concatenate(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  Shape shape = parts[0].shape();
  shape[0] = 0;
  for (const Tensor& part : parts) shape[0] += part.shape()[0];
  auto [joined, target] = Tensor::AllocateUnfilled(parts[0].dtype(), std::move(shape));
  for (const Tensor& part : parts) {
    part.CopyTo(target);
    target += part.byte_size();
  }
  return joined;
}

Tensor Corner(const Tensor& tensor, const Shape& shape) {
  const Shape& whole = tensor.shape();
  if (shape.empty() || std::equal(shape.begin() + 1, shape.end(), whole.begin() + 1)) {
    return shape.empty() ? tensor : tensor.Rows(0, shape[0]);
  }
  auto [corner, bytes] = Tensor::Allocate(tensor.dtype(), shape);
  CopyCorner(shape.data(), tensor.bytes(), whole.data(), bytes, shape.data(), shape.size(),
             ByteSize(tensor.dtype()));
  return corner;
}

}  // namespace linserve
