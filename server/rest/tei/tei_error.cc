#include "rest/tei/tei_error.h"

#include <utility>

#include "core/json/json_text.h"
#include "core/status/retry_delay.h"
#include "rest/calls/http_errors.h"
#include "rest/calls/request_ids.h"
#include "rpc/calls/grpc_status.h"

namespace linserve {
namespace {

constexpr const char* kEmpty = "linserve/empty";

struct TeiFault {
  const char* type;
  int code;
};

TeiFault FaultOf(const absl::Status& status) {
  const int code = HttpCode(status);
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      if (status.GetPayload(kEmpty).has_value()) return {"Empty", 400};
      return {"Validation", 422};
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kNotFound:
      return {"Validation", code};
    case absl::StatusCode::kResourceExhausted:
      return {code == 413 ? "Validation" : "Overloaded", code};
    case absl::StatusCode::kUnavailable:
      return {"Unhealthy", code};
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      return {"Backend", code};
    default:
      return {"Backend", 424};
  }
}

std::string ErrorBody(const std::string& message, const char* type) {
  return JsonText(nlohmann::json{{"error", message}, {"error_type", type}});
}

}  // namespace

HttpForm TeiForm(const std::string& prefix) {
  return {.prefix = prefix, .begin = NameRequest, .end = [](const auto& request, HttpReply& reply) {
            NameReply(request, reply);
            if (reply.error.empty()) return;
            const char* type = reply.status == 503 ? "Unhealthy" : "Validation";
            reply.body = ErrorBody(reply.error, reply.status == 429 ? "Overloaded" : type);
          }};
}

absl::Status EmptyList(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kEmpty, absl::Cord());
  return status;
}

HttpReply TeiError(const absl::Status& status) {
  const TeiFault fault = FaultOf(status);
  HttpReply reply = ErrorReply(status, ErrorBody(MessageOf(status), fault.type));
  reply.status = fault.code;
  return reply;
}

}  // namespace linserve
