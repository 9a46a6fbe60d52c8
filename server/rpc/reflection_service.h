#pragma once

#include <string>
#include <utility>
#include <vector>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace linserve {

using ReflectionStream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// Tells of the services of these names on one call, and of all that they are made of.
ReflectionStream* AnswerReflection(const std::vector<std::string>& services);

// Serves grpc.reflection.v1.ServerReflection, or v1alpha's, whose messages are the same. gRPC's own
// takes a thread for each call, and decodes messages of any size.
template <typename Protocol>
class ReflectionService : public Protocol::template WithRawCallbackMethod_ServerReflectionInfo<
                              typename Protocol::Service> {
 public:
  explicit ReflectionService(std::vector<std::string> services) : services_(std::move(services)) {}

  ReflectionStream* ServerReflectionInfo(grpc::CallbackServerContext* /*context*/) override {
    return AnswerReflection(services_);
  }

 private:
  const std::vector<std::string> services_;
};

}  // namespace linserve
