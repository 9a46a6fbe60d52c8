#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/signature.h"
#include "inference/grpc_service.pb.h"
#include "repository/repository.h"
#include "serving/service_context.h"

namespace linserve {

// These functions say what is wrong with a request of the Open Inference Protocol, in the words of
// Triton, which clients may look for.

// Reads the version that a request names: 0, the latest, if it names none. INVALID_ARGUMENT if it
// is not a number.
absl::StatusOr<int64_t> VersionOf(const std::string& text);

// Finds the model that a request of the Open Inference Protocol is for.
absl::StatusOr<std::shared_ptr<const ServedModel>> FindInferModel(const ServiceContext& service,
                                                                  const Caller& caller,
                                                                  const std::string& name,
                                                                  const std::string& version);

// Puts the request's id, by which the log names it, before the message, as Triton does.
absl::Status WithRequestId(const absl::Status& status, const std::string& id);

// Returns INVALID_ARGUMENT unless the inputs are what the model takes: none missing, none unknown.
// `takes_text` says that there is the input kTextInput, too.
absl::Status CheckInputs(const Signature& signature, const inference::ModelInferRequest& message,
                         const std::string& model, bool takes_text);

// Returns INVALID_ARGUMENT unless each tensor has the axes of its input and that of the batch.
absl::Status CheckRanks(const Signature& signature, const TensorMap& tensors,
                        const std::string& model);

// Returns INVALID_ARGUMENT unless each tensor is of a type that its input takes.
absl::Status CheckDatatypes(const Signature& signature, const TensorMap& tensors,
                            const std::string& model);

}  // namespace linserve
