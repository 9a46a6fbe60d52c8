#include "rpc/infer_answer.h"

#include "rpc/inference_tensors.h"

namespace linserve {

inference::ModelInferResponse InferAnswer::Message(size_t part) const {
  inference::ModelInferResponse message;
  message.set_model_name(model_name);
  message.set_model_version(model_version);
  message.set_id(id);
  const TensorMap& tensors = parts[part];
  if (outputs.empty()) {
    for (const auto& [name, tensor] : tensors) AddOutput(name, tensor, message);
  }
  for (const std::string& name : outputs) AddOutput(name, tensors.at(name), message);
  return message;
}

}  // namespace linserve
