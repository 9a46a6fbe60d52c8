#include "core/tensor/row_scale.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

constexpr std::string_view kSuffix = "_scale";

absl::StatusOr<Tensor> Multiplied(const Tensor& rows, const Tensor& scale) {
  Shape expected = rows.shape();
  if (!expected.empty()) expected.back() = 1;
  if (rows.shape().empty() || scale.dtype() != DType::kF32 || scale.shape() != expected) {
    return absl::InvalidArgumentError(
        "rows " + ToString(rows.shape()) + " come with scales " + ToString(scale.shape()) +
        " of type " + std::string(Name(scale.dtype())) + ", expected F32 " + ToString(expected));
  }
  auto [tensor, bytes] = Tensor::Allocate(DType::kF32, rows.shape());
  auto* values = reinterpret_cast<float*>(bytes);
  const auto* quantized = rows.data<int8_t>();
  std::vector<float> scales(static_cast<size_t>(scale.elements()));
  ConvertToFloat(scale, scales.data());
  for (const float factor : scales) {
    for (int64_t i = 0; i < rows.shape().back(); ++i) {
      *values++ = static_cast<float>(*quantized++) * factor;
    }
  }
  return tensor;
}

}  // namespace

std::string ScaleOf(const std::string& output) { return output + std::string(kSuffix); }

void DropScales(std::vector<std::string>& outputs) {
  const std::vector<std::string> all = outputs;
  std::erase_if(outputs, [&](const std::string& name) {
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& other) { return name == ScaleOf(other); });
  });
}

absl::Status Dequantize(TensorMap& outputs) {
  for (auto& [name, tensor] : outputs) {
    const auto scale = outputs.find(ScaleOf(name));
    if (tensor.dtype() != DType::kI8 || scale == outputs.end()) continue;
    auto values = Multiplied(tensor, scale->second);
    if (!values.ok()) {
      return absl::Status(values.status().code(),
                          "output " + Quoted(name) + ": " + std::string(values.status().message()));
    }
    tensor = *std::move(values);
    outputs.erase(scale);  // the scale follows its output by name, so that the loop goes on
  }
  return absl::OkStatus();
}

}  // namespace linserve
