#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "http/http_message.h"
#include "rest/calls/answering.h"
#include "rest/calls/rest_call.h"
#include "rest/tei/tei_error.h"

namespace linserve {

// Says in headers what was computed and where the time went, in milliseconds, as
// text-embeddings-inference does.
void AddTimes(const RestCall& call, const Timing& timing, int64_t tokens, HttpReply& reply);

// Writes the reply of an answer, with its times.
template <typename Answer>
HttpReply TeiReply(const RestCall& call, const absl::StatusOr<Answer>& answer,
                   absl::FunctionRef<absl::StatusOr<HttpReply>(const Answer&)> write) {
  HttpReply reply = ReplyWith<Answer>(answer, TeiError, write);
  if (answer.ok()) AddTimes(call, answer->timing, answer->tokens, reply);
  return reply;
}

}  // namespace linserve
