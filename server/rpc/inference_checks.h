#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/signature.h"
#include "engine/repository.h"
#include "rpc/service_context.h"

namespace linserve {

// What is wrong with a request of the Open Inference Protocol, in the words of Triton, which
// clients may look for.

// The version that a request names: 0, the latest, if it names none. INVALID_ARGUMENT if it is no
// number.
absl::StatusOr<int64_t> VersionOf(const std::string& text);

// The model that a request of the Open Inference Protocol is for. NOT_FOUND in Triton's words.
absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const ServiceContext& service,
                                                             const Caller& caller,
                                                             const std::string& name,
                                                             const std::string& version);

// As Triton has it: with the request's id before the message.
absl::Status WithRequestId(const absl::Status& status, const std::string& id);

// INVALID_ARGUMENT unless the tensors are what the model takes: none missing, none unknown.
absl::Status CheckInputs(const Signature& signature, const TensorMap& tensors,
                         const std::string& model);

// INVALID_ARGUMENT unless each is of a type that its input takes.
absl::Status CheckDatatypes(const Signature& signature, const TensorMap& tensors,
                            const std::string& model);

}  // namespace linserve
