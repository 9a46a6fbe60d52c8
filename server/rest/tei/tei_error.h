#pragma once

#include <string>

#include "absl/status/status.h"
#include "http/http_message.h"

namespace linserve {

// Returns INVALID_ARGUMENT for a list that should hold something, which text-embeddings-inference
// tells from what else is wrong.
absl::Status EmptyList(const std::string& message);

// Replies {"error": "...", "error_type": "..."} with the code that text-embeddings-inference has
// for the type: 422 Validation, 400 Empty, 424 Backend, 429 Overloaded, 503 Unhealthy. What it does
// not know, such as a caller without a token, has the code that the other APIs give.
HttpReply TeiError(const absl::Status& status);

// Gives what is refused under such a path before it comes to a call that form, too.
HttpForm TeiForm(const std::string& prefix);

}  // namespace linserve
