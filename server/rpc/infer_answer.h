#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "inference/grpc_service.pb.h"

namespace linserve {

// The answer to a ModelInferRequest, as one message or several.
struct InferAnswer {
  std::string id;  // as the caller gave it
  std::string model_name;
  std::string model_version;
  std::vector<std::string> outputs;  // in the order in which they are sent; empty: by name
  std::vector<TensorMap> parts;      // one a message, batch and all

  inference::ModelInferResponse Message(size_t part) const;
};

}  // namespace linserve
