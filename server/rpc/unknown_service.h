#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <string>
#include <utility>
#include <vector>

namespace linserve {

// Answers calls of methods that there are not: gRPC itself says UNIMPLEMENTED without a word.
class UnknownService : public grpc::CallbackGenericService {
 public:
  // Tells callers of the services of these names.
  explicit UnknownService(const std::vector<std::string>& services);

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  std::string services_;
};

}  // namespace linserve
