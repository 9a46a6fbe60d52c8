#include "rpc/calls/grpc_status.h"

#include <string>

#include "core/status/retry_delay.h"
#include "core/strings/utf8.h"
#include "core/threads/guarded.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace linserve {
namespace {

std::string DetailsOf(grpc::StatusCode code, const std::string& message,
                      std::chrono::milliseconds delay) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(delay.count() / 1000);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay.count() % 1000 * 1000000));
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  details.add_details()->PackFrom(info);
  return details.SerializeAsString();
}

}  // namespace

std::string MessageOf(const absl::Status& status) {
  constexpr size_t kMostBytes = 1024;
  const absl::string_view message = status.message();
  const std::string text = AsUtf8({message.data(), message.size()});
  return std::string(CutAtCharacter(text, kMostBytes));
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  // absl numbers its codes as gRPC does.
  const auto code = static_cast<grpc::StatusCode>(status.code());
  grpc::Status converted(code, "");
  RunGuarded("the words of a status", [&] {
    const std::string message = MessageOf(status);
    const auto delay = RetryDelayOf(status);
    converted = {code, message, delay ? DetailsOf(code, message, *delay) : ""};
  });
  return converted;
}

std::optional<std::chrono::milliseconds> RetryDelayOf(const grpc::Status& status) {
  google::rpc::Status details;
  if (status.error_details().empty() || !details.ParseFromString(status.error_details())) {
    return std::nullopt;
  }
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::RetryInfo info;
    if (!detail.UnpackTo(&info)) continue;
    return std::chrono::seconds(info.retry_delay().seconds()) +
           std::chrono::milliseconds(info.retry_delay().nanos() / 1000000);
  }
  return std::nullopt;
}

}  // namespace linserve
