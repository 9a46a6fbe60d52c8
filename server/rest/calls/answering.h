#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/threads/guarded.h"
#include "http/http_message.h"
#include "rest/calls/rest_call.h"

namespace linserve {

// Begins what calls back with its result, on any thread, and waits for that.
template <typename Result, typename Begin>
Result Await(const Begin& begin) {
  const auto ended = std::make_shared<std::promise<Result>>();
  begin([ended](Result result) { ended->set_value(std::move(result)); });
  return ended->get_future().get();
}

// Has a request of this kind answered, and waits for that. A query that could not be read is
// refused, which counts as a request, too. `rpc` names the request in the metrics.
template <typename State>
absl::StatusOr<typename State::Answered> Ask(
    const RestCall& call, const std::string& rpc,
    absl::FunctionRef<absl::StatusOr<typename State::Query>()> read) {
  auto query = read();
  return Await<absl::StatusOr<typename State::Answered>>([&](const auto& done) {
    const auto state = std::make_shared<State>(SideOf(call, rpc), ContextOf(call, ""), done);
    if (query.ok()) {
      state->Submit(call.service, *std::move(query));
    } else {
      state->Refuse(query.status());
    }
  });
}

// Writes the reply of an answer. What goes wrong there is how the request ended, for its caller and
// for those who count.
template <typename Answer>
HttpReply ReplyWith(const absl::StatusOr<Answer>& answer,
                    absl::FunctionRef<HttpReply(const absl::Status&)> error,
                    absl::FunctionRef<absl::StatusOr<HttpReply>(const Answer&)> write) {
  if (!answer.ok()) return error(answer.status());
  auto reply = Guarded("the answer", [&] { return write(*answer); });
  if (!reply.ok()) {
    answer->sending->Failed(reply.status());
    return error(reply.status());
  }
  reply->sending = answer->sending;
  return *std::move(reply);
}

}  // namespace linserve
