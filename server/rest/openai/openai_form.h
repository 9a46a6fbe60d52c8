#pragma once

#include <string>

#include "absl/status/status.h"
#include "http/http_message.h"

// OpenAI's API beyond its single calls.

namespace linserve {

// Replies with OpenAI's error object.
HttpReply OpenAiError(const absl::Status& status);

// Gives every reply under such a path its request's id, and what is refused there before it comes
// to a call OpenAI's error object, too.
HttpForm OpenAiForm(const std::string& prefix);

}  // namespace linserve
