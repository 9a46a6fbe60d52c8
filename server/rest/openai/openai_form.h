#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/json/json_reader.h"
#include "http/http_message.h"
#include "rest/json/json_members.h"

// OpenAI's API beyond its single calls.

namespace linserve {

// Reads a whole body, as ReadBody() does. Faults of a member are told to be its.
absl::Status ReadOpenAiBody(JsonReader& reader, std::vector<JsonMember> members);

// Returns what follows the list in an answer: its end, the model, and the tokens that were read.
std::string EndOfAnswer(const std::string& model, int64_t tokens);

// Replies with OpenAI's error object.
HttpReply OpenAiError(const absl::Status& status);

// Gives every reply under such a path its request's id, and what is refused there before it comes
// to a call OpenAI's error object, too.
HttpForm OpenAiForm(const std::string& prefix);

}  // namespace linserve
