#include "rpc/oip/infer_answer.h"

#include <algorithm>

#include "rpc/oip/inference_tensors.h"

namespace linserve {

size_t InferAnswer::Chunks() const {
  int64_t longest = 1;
  for (const auto& [name, tensor] : rows) longest = std::max(longest, tensor.shape()[0]);
  return static_cast<size_t>((longest - 1) / chunk_rows + 1);
}

TensorMap InferAnswer::TensorsOf(size_t chunk) const {
  TensorMap tensors = whole;
  for (const auto& [name, tensor] : rows) {
    const int64_t length = tensor.shape()[0];
    const int64_t begin = std::min(length, static_cast<int64_t>(chunk) * chunk_rows);
    const Tensor cut = tensor.Rows(begin, begin + std::min(chunk_rows, length - begin));
    Shape shape = cut.shape();
    shape.insert(shape.begin() + (batch_second.contains(name) ? 1 : 0), 1);
    tensors[name] = cut.Reshaped(std::move(shape));
  }
  return tensors;
}

std::vector<std::pair<std::string, Tensor>> InferAnswer::Outputs(size_t chunk) const {
  const TensorMap tensors = TensorsOf(chunk);
  if (outputs.empty()) return {tensors.begin(), tensors.end()};
  std::vector<std::pair<std::string, Tensor>> ordered;
  for (const std::string& name : outputs) ordered.emplace_back(name, tensors.at(name));
  return ordered;
}

WireMessage InferAnswer::Chunk(size_t chunk, inference::ModelInferResponse head) const {
  head.set_model_name(model_name);
  head.set_model_version(model_version);
  head.set_id(id);
  head.mutable_parameters()->insert(parameters.begin(), parameters.end());
  const auto tensors = Outputs(chunk);
  for (const auto& [name, tensor] : tensors) AddOutput(name, tensor, head);
  WireMessage wire;
  wire.Add(head);
  for (const auto& [name, tensor] : tensors) {
    wire.AddBytes(inference::ModelInferResponse::kRawOutputContentsFieldNumber, tensor);
  }
  return wire;
}

}  // namespace linserve
