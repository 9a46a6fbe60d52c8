#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "inference/grpc_service.pb.h"
#include "rpc/messages/wire.h"
#include "serving/request.h"

namespace linserve {

// Holds the answer to a ModelInferRequest, as one message or several.
struct InferAnswer {
  std::string id;  // as the caller gave it
  std::string model_name;
  std::string model_version;
  std::vector<std::string> outputs;  // in the order in which they are sent; empty: by name
  TensorMap whole;                   // outputs that each message has, batch and all
  // Outputs of which a message has so many rows at most: those of the one sequence, without the
  // axis of the batch, which comes second in some of them.
  TensorMap rows;
  int64_t chunk_rows = 1;
  std::set<std::string> batch_second;
  // Holds the parameters of a session: the request's, and where the session stands now.
  google::protobuf::Map<std::string, inference::InferParameter> parameters;
  std::shared_ptr<Sending> sending;  // held until the answer is sent

  // Returns the number of messages. Outputs with fewer rows than others end earlier, and are empty
  // after that.
  size_t Chunks() const;

  // Returns the outputs of a chunk, in the order in which they are sent.
  std::vector<std::pair<std::string, Tensor>> Outputs(size_t chunk) const;

  // Returns the outputs of a chunk by name.
  TensorMap TensorsOf(size_t chunk) const;

  // Makes a ModelInferResponse; `head` holds what it has besides the outputs.
  WireMessage Chunk(size_t chunk, inference::ModelInferResponse head = {}) const;
};

}  // namespace linserve
