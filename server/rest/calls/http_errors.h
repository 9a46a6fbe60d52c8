#pragma once

#include <string>

#include "absl/status/status.h"
#include "http/http_message.h"

namespace linserve {

// Returns the HTTP code that says what the status says.
int HttpCode(const absl::Status& status);

// Replies {"error": "..."}, as KServe and Triton do, with Retry-After where another try may
// succeed.
HttpReply ErrorReply(const absl::Status& status);

// Replies with a body of another form, with Retry-After where another try may succeed.
HttpReply ErrorReply(const absl::Status& status, std::string body);

}  // namespace linserve
