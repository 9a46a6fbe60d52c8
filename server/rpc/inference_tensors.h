#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/signature.h"
#include "core/tensor.h"
#include "inference/grpc_service.pb.h"
#include "rpc/received.h"

namespace linserve {

// Tensors of the Open Inference Protocol, and plain ones.

// "FP32", "INT64", "BOOL", ...
std::string_view Datatype(DType dtype);

// The type that an input is announced with; it takes every other one of its kind, too.
DType AnnouncedType(InputKind kind);

// The inputs of a request by name. They view the raw contents, which `owner` keeps alive or which
// were left out of the message; typed
// ones are copied, and unsigned integers that no DType has become I64. INVALID_ARGUMENT, in
// Triton's words, for what is wrong without regard to the model.
absl::StatusOr<TensorMap> ToTensors(const inference::ModelInferRequest& message,
                                    const LargeFields& large, const std::string& model,
                                    const std::shared_ptr<const void>& owner);

// Appends what an output is, without its contents.
void AddOutput(const std::string& name, const Tensor& tensor,
               inference::ModelInferResponse& message);

}  // namespace linserve
