#pragma once

#include <string>

#include "absl/status/status.h"
#include "http/http_message.h"

namespace linserve {

// The HTTP code that says what a status says.
int HttpCode(const absl::Status& status);

// {"error": "..."}, as KServe and Triton have it; with Retry-After where another try may succeed.
HttpReply ErrorReply(const absl::Status& status);

// The same with a body of another form.
HttpReply ErrorReply(const absl::Status& status, std::string body);

}  // namespace linserve
