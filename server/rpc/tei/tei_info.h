#pragma once

#include <string>

#include "absl/status/status.h"
#include "access/caller.h"
#include "serving/service_context.h"
#include "tei/v1/tei.pb.h"

namespace linserve {

// Describes a model, and the server around it, as text-embeddings-inference does. "" is the only
// model.
absl::Status Describe(const ServiceContext& service, const Caller& caller, const std::string& model,
                      tei::v1::InfoResponse& info);

}  // namespace linserve
