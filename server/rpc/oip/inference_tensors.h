#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/sequence/signature.h"
#include "core/tensor/tensor.h"
#include "inference/grpc_service.pb.h"

namespace linserve {

// These functions convert between tensors of the Open Inference Protocol and plain ones.

// Returns "FP32", "INT64", "BOOL", ...
std::string_view Datatype(DType dtype);

// Returns INVALID_ARGUMENT unless the protocol has a datatype of this name.
absl::Status CheckDatatype(const std::string& datatype);

// Returns the type that an input is announced with; it takes every other type of its kind, too.
DType AnnouncedType(InputKind kind);

// Returns the bytes that ToTensors() takes for raw contents of types that it converts.
int64_t ConvertedBytes(const inference::ModelInferRequest& message);

// Returns the inputs of a request by name. They view the raw contents, which `owner` keeps alive or
// which were left out of the message. Typed contents are copied, and unsigned integers that no
// DType has become I64. INVALID_ARGUMENT, in Triton's words, says what is wrong without regard to
// the model.
absl::StatusOr<TensorMap> ToTensors(const inference::ModelInferRequest& message,
                                    const std::string& model,
                                    const std::shared_ptr<const void>& owner);

// Appends the description of an output, without its contents.
void AddOutput(const std::string& name, const Tensor& tensor,
               inference::ModelInferResponse& message);

}  // namespace linserve
