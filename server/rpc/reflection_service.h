#pragma once

#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace linserve {

using ReflectionProtocol = grpc::reflection::v1alpha::ServerReflection;

// Serves grpc.reflection.v1alpha.ServerReflection. gRPC's own takes a thread for each call, and
// decodes messages of any size.
class ReflectionService : public ReflectionProtocol::WithRawCallbackMethod_ServerReflectionInfo<
                              ReflectionProtocol::Service> {
 public:
  // Tells of the services of these names.
  explicit ReflectionService(std::vector<std::string> services) : services_(std::move(services)) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServerReflectionInfo(
      grpc::CallbackServerContext* context) override;

 private:
  const std::vector<std::string> services_;
};

}  // namespace linserve
