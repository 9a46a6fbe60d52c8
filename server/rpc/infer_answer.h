#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "inference/grpc_service.pb.h"
#include "rpc/wire.h"

namespace linserve {

// The answer to a ModelInferRequest, as one message or several.
struct InferAnswer {
  std::string id;  // as the caller gave it
  std::string model_name;
  std::string model_version;
  std::vector<std::string> outputs;  // in the order in which they are sent; empty: by name
  std::vector<TensorMap> parts;      // one a message, batch and all
  // Of a session: the request's, and where it stands now.
  google::protobuf::Map<std::string, inference::InferParameter> parameters;
  std::shared_ptr<void> sending;  // to be held until it is sent

  // Those of a part, in the order in which they are sent.
  std::vector<std::pair<std::string, Tensor>> Outputs(size_t part) const;

  // A ModelInferResponse; `head` holds what it has besides.
  WireMessage Part(size_t part, inference::ModelInferResponse head = {}) const;
};

}  // namespace linserve
