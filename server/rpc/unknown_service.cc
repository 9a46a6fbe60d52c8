#include "rpc/unknown_service.h"

#include "absl/status/status.h"
#include "core/strings/quote.h"
#include "rpc/calls/started.h"

namespace linserve {

UnknownService::UnknownService(const std::vector<std::string>& services) {
  for (const std::string& service : services)
    services_ += (services_.empty() ? "" : ", ") + service;
}

grpc::ServerGenericBidiReactor* UnknownService::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return Started<grpc::ServerGenericBidiReactor>([&] {
    return new EndedCall<grpc::ServerGenericBidiReactor>(absl::UnimplementedError(
        "there is no method " + Quoted(context->method()) + "; the services are " + services_));
  });
}

}  // namespace linserve
