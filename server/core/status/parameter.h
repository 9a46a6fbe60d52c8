#pragma once

#include <string>

#include "absl/status/status.h"

namespace linserve {

// Returns the status with the name of the parameter of the request that is at fault.
absl::Status OfParameter(absl::Status status, const std::string& name);

// Returns the name that OfParameter() gave the status; "" if it gave none.
std::string ParameterOf(const absl::Status& status);

}  // namespace linserve
