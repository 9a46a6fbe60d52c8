#include "rpc/grpc_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <string>
#include <utility>

namespace linserve {
namespace {

// Asks ReloadingTls at each handshake. gRPC's own FileWatcherCertificateProvider hands on a key and
// a certificate that do not belong together, as they are between the two being replaced, and then
// nobody can connect.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingCredentials(std::unique_ptr<ReloadingTls> tls, bool mutual) : tls_(std::move(tls)) {
    const auto request = mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, Fetch, this));
  }
  ReloadingCredentials(const ReloadingCredentials&) = delete;
  ReloadingCredentials& operator=(const ReloadingCredentials&) = delete;
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // Called by gRPC, by one thread at a time. Makes a configuration that gRPC then owns.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* credentials, grpc_ssl_server_certificate_config** configuration) {
    auto& self = *static_cast<ReloadingCredentials*>(credentials);
    const auto now = self.tls_->Current();
    if (now == self.fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {now->private_key.c_str(), now->certificate.c_str()};
    // gRPC wants an authority in any case. Where callers are not asked for a certificate, it is for
    // nothing.
    const std::string& authority = now->client_ca.empty() ? now->certificate : now->client_ca;
    *configuration = grpc_ssl_server_certificate_config_create(authority.c_str(), &pair, 1);
    self.fetched_ = now;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::unique_ptr<ReloadingTls> tls_;
  std::shared_ptr<const TlsContents> fetched_;  // by gRPC, which uses it until there is another
  grpc_server_credentials* credentials_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(const TlsFiles& files) {
  if (!files.enabled()) {
    if (absl::Status status = CheckTlsFiles(files); !status.ok()) return status;
    return grpc::InsecureServerCredentials();
  }
  auto tls = ReloadingTls::Open(files);
  if (!tls.ok()) return tls.status();
  return std::make_shared<ReloadingCredentials>(*std::move(tls), files.mutual());
}

}  // namespace linserve
