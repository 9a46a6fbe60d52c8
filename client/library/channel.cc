#include "client/library/channel.h"

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/client_interceptor.h>

#include <future>
#include <utility>
#include <vector>

#include "client/library/service_config.h"
#include "core/system/loopback.h"

namespace linserve {
namespace {

using grpc::experimental::InterceptionHookPoints;

// Adds the token to calls. gRPC's own credentials of calls are for TLS only; a Unix socket needs
// none.
class AddToken : public grpc::experimental::Interceptor {
 public:
  explicit AddToken(const std::string& header) : header_(header) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->insert({"authorization", header_});
    }
    methods->Proceed();
  }

 private:
  const std::string& header_;
};

class AddTokens : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit AddTokens(const std::string& token) : header_("Bearer " + token) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo* /*info*/) override {
    return new AddToken(header_);  // gRPC deletes it
  }

 private:
  const std::string header_;
};

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const TlsOptions& tls) {
  if (!tls.enabled) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({tls.authority, tls.private_key, tls.certificate});
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(options.max_message_bytes);
  // Each client has a connection of its own: without this setting, equal channels would share one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // gRPC would ask the proxy that http_proxy names even for this machine.
  if (IsLoopbackTarget(options.target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The channel must try to connect as often as the calls are tried again. (The like-named MIN is
  // the time that an attempt to connect may take.)
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   static_cast<int>(options.backoff.initial.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   static_cast<int>(options.backoff.max.count()));
  if (options.balance) {
    arguments.SetServiceConfigJSON(kServiceConfig);
    // gRPC does not try a request again that is larger than this; its own default is 256 KiB.
    constexpr int kMostRetried = 64 << 20;
    arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, kMostRetried);
  }
  if (!options.tls.server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls.server_name);
  }
  const auto credentials = CredentialsOf(options.tls);
  if (options.token.empty()) {
    return grpc::CreateCustomChannel(options.target, credentials, arguments);
  }
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<AddTokens>(options.token));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      options.target, credentials, arguments, std::move(interceptors));
}

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
