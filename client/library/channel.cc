#include "client/library/channel.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include <utility>
#include <vector>

#include "client/library/service_config.h"

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

}  // namespace linserve
