#include "client/library/health.h"

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <future>
#include <utility>

namespace linserve {

grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         std::chrono::system_clock::time_point deadline, const std::string& service,
                         HealthState* state) {
  // HealthCheckRequest {string service = 1} and HealthCheckResponse {enum status = 1} have the
  // bytes of these two well-known messages, which spares their generated code.
  grpc::TemplatedGenericStub<google::protobuf::StringValue, google::protobuf::Int32Value> stub(
      channel);
  grpc::ClientContext context;
  context.set_deadline(deadline);
  google::protobuf::StringValue request;
  request.set_value(service);
  google::protobuf::Int32Value response;
  // The promise is shared with the callback, which is still leaving set_value() when this thread
  // goes on.
  const auto done = std::make_shared<std::promise<grpc::Status>>();
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                 [done](grpc::Status status) { done->set_value(std::move(status)); });
  grpc::Status status = done->get_future().get();
  const bool known = response.value() >= 0 && response.value() <= 3;
  *state = known ? static_cast<HealthState>(response.value()) : HealthState::kUnknown;
  return status;
}

}  // namespace linserve
