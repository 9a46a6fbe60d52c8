#include "rpc/infer_answer.h"

#include "rpc/inference_tensors.h"

namespace linserve {

std::vector<std::pair<std::string, Tensor>> InferAnswer::Outputs(size_t part) const {
  if (outputs.empty()) return {parts[part].begin(), parts[part].end()};
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const std::string& name : outputs) tensors.emplace_back(name, parts[part].at(name));
  return tensors;
}

WireMessage InferAnswer::Part(size_t part, inference::ModelInferResponse head) const {
  head.set_model_name(model_name);
  head.set_model_version(model_version);
  head.set_id(id);
  head.mutable_parameters()->insert(parameters.begin(), parameters.end());
  const auto tensors = Outputs(part);
  for (const auto& [name, tensor] : tensors) AddOutput(name, tensor, head);
  WireMessage wire;
  wire.Add(head);
  for (const auto& [name, tensor] : tensors) {
    wire.AddBytes(inference::ModelInferResponse::kRawOutputContentsFieldNumber, tensor);
  }
  return wire;
}

}  // namespace linserve
