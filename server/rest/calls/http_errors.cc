#include "rest/calls/http_errors.h"

#include <chrono>
#include <string>
#include <utility>

#include "core/json/json_text.h"
#include "core/status/retry_delay.h"
#include "rpc/calls/grpc_status.h"

namespace linserve {

int HttpCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return IsNeverFits(status) ? 413 : 429;
    case absl::StatusCode::kCancelled:
      return 499;  // nginx's code for a caller that has left
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpReply ErrorReply(const absl::Status& status, std::string body) {
  HttpReply reply{.status = HttpCode(status), .body = std::move(body)};
  if (reply.status == 429 || reply.status == 503) {
    const auto delay = RetryDelayOf(status).value_or(std::chrono::seconds(1));
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(delay).count();
    reply.headers.emplace_back("Retry-After", std::to_string(seconds));
  }
  if (reply.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

HttpReply ErrorReply(const absl::Status& status) {
  HttpReply reply = ErrorReply(status, JsonText(nlohmann::json{{"error", MessageOf(status)}}));
  reply.error = MessageOf(status);
  return reply;
}

}  // namespace linserve
