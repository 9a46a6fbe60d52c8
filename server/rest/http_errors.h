#pragma once

#include <string>

#include "absl/status/status.h"
#include "http/http_message.h"

namespace linserve {

// Returns the HTTP code that says what the status says.
int HttpCode(const absl::Status& status);

// Returns the status with the name of the parameter of the request that is at fault.
absl::Status OfParameter(absl::Status status, const std::string& name);

// Returns the name that OfParameter() gave the status; "" if it gave none.
std::string ParameterOf(const absl::Status& status);

// Replies {"error": "..."}, as KServe and Triton do, with Retry-After where another try may
// succeed.
HttpReply ErrorReply(const absl::Status& status);

// Replies with a body of another form, with Retry-After where another try may succeed.
HttpReply ErrorReply(const absl::Status& status, std::string body);

}  // namespace linserve
