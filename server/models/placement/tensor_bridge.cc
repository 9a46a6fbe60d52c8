#include "models/placement/tensor_bridge.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

constexpr std::array<std::pair<DType, at::ScalarType>, 10> kTypes = {{
    {DType::kBool, at::kBool},
    {DType::kU8, at::kByte},
    {DType::kI8, at::kChar},
    {DType::kI16, at::kShort},
    {DType::kI32, at::kInt},
    {DType::kI64, at::kLong},
    {DType::kF16, at::kHalf},
    {DType::kBF16, at::kBFloat16},
    {DType::kF32, at::kFloat},
    {DType::kF64, at::kDouble},
}};

DType FromScalarType(at::ScalarType type) {
  for (const auto& [dtype, scalar_type] : kTypes) {
    if (scalar_type == type) return dtype;
  }
  TORCH_CHECK(false, "no wire type for ", type);
}

}  // namespace

at::ScalarType ToScalarType(DType dtype) { return kTypes[static_cast<size_t>(dtype)].second; }

at::ScalarType TensorType(DType dtype, const at::Device& device) {
  return device.is_cpu() ? at::kFloat : ToScalarType(dtype);
}

at::Tensor ToAten(const Tensor& tensor) {
  const auto options = at::TensorOptions().dtype(ToScalarType(tensor.dtype()));
  if (reinterpret_cast<uintptr_t>(tensor.bytes()) % ByteSize(tensor.dtype()) != 0) {
    at::Tensor copy = at::empty(tensor.shape(), options);
    tensor.CopyTo(static_cast<std::byte*>(copy.data_ptr()));
    return copy;
  }
  // LibTorch knows no read-only memory; callers promise not to write.
  void* bytes = const_cast<std::byte*>(tensor.bytes());
  return at::from_blob(
      bytes, tensor.shape(), [owner = tensor.owner()](void*) {}, options);
}

Tensor FromAten(const at::Tensor& tensor) {
  auto held = std::make_shared<const at::Tensor>(tensor.to(at::kCPU).contiguous());
  return Tensor(FromScalarType(held->scalar_type()), held->sizes().vec(), held->const_data_ptr(),
                held);
}

Tensor FromAtenApart(const at::Tensor& tensor) {
  const bool is_part = tensor.is_cpu() && tensor.storage().nbytes() > 2 * tensor.nbytes();
  return FromAten(is_part ? tensor.clone() : tensor);
}

}  // namespace linserve
