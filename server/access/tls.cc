#include "access/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>

#include "core/files/file.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

using Context = std::shared_ptr<SSL_CTX>;

// Returns OK if there is a file of a size that certificates have. OpenSSL would wait for a pipe and
// read without an end, for as long as a handshake waits.
absl::Status CheckFile(const std::string& what, const std::string& path) {
  constexpr size_t kLongest = 4 << 20;  // all authorities that browsers know take a quarter
  const auto file = InputFile::Open(path);
  if (!file.ok()) {
    return {file.status().code(), what + ": " + std::string(file.status().message())};
  }
  if (file->size() <= kLongest) return absl::OkStatus();
  return absl::InvalidArgumentError(what + " " + path + " is longer than " +
                                    std::to_string(kLongest) + " bytes");
}

absl::Status Unusable(const std::string& what, const std::string& path) {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  ERR_clear_error();
  return absl::InvalidArgumentError(what + " " + path + " cannot be used" +
                                    (reason == nullptr ? "" : std::string(": ") + reason) +
                                    "; expected PEM");
}

void Verify(SSL_CTX& context) {
  // FAIL_IF_NO_PEER_CERT is left out, because probes come without a certificate.
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  const unsigned char id[] = "linserve";
  SSL_CTX_set_session_id_context(&context, id, sizeof(id) - 1);
}

// Returns when the certificate expires.
std::chrono::system_clock::time_point EndOf(const X509& certificate) {
  std::tm time{};
  ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time);
  return std::chrono::system_clock::from_time_t(::timegm(&time));
}

absl::StatusOr<Context> Load(const TlsFiles& files) {
  if (files.private_key.empty()) {
    return absl::InvalidArgumentError("tls_certificate is set, but tls_private_key is not");
  }
  absl::Status status = CheckFile("tls_certificate", files.certificate);
  if (status.ok()) status = CheckFile("tls_private_key", files.private_key);
  if (status.ok() && files.mutual()) status = CheckFile("tls_client_ca", files.client_ca);
  if (!status.ok()) return status;
  Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return Unusable("tls_certificate", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.private_key.c_str(), SSL_FILETYPE_PEM) !=
          1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Unusable("tls_private_key", files.private_key);
  }
  if (!files.mutual()) return context;
  if (SSL_CTX_load_verify_locations(context.get(), files.client_ca.c_str(), nullptr) != 1) {
    return Unusable("tls_client_ca", files.client_ca);
  }
  Verify(*context);
  return context;
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  if (files.enabled()) return Load(files).status();
  if (files.private_key.empty() && files.client_ca.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "tls_private_key and tls_client_ca mean nothing without tls_certificate");
}

absl::StatusOr<std::chrono::system_clock::time_point> ExpiryOf(const TlsFiles& files) {
  const auto context = Load(files);
  if (!context.ok()) return context.status();
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context->get(), &chain);
  auto first = EndOf(*SSL_CTX_get0_certificate(context->get()));
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    first = std::min(first, EndOf(*sk_X509_value(chain, i)));
  }
  return first;
}

absl::StatusOr<std::unique_ptr<ReloadingTls>> ReloadingTls::Open(const TlsFiles& files,
                                                                 Clock& clock) {
  std::unique_ptr<ReloadingTls> tls(new ReloadingTls(files, clock));
  auto context = Load(files);
  if (!context.ok()) return context.status();
  MutexLock lock(tls->mutex_);
  tls->context_ = *std::move(context);
  return tls;
}

ReloadingTls::~ReloadingTls() = default;

void ReloadingTls::Install(SSL_CTX& server) {
  SSL_CTX_set_min_proto_version(&server, TLS1_2_VERSION);
  // Sessions are not cached, because a session that is resumed was verified by the authority of its
  // time, not by today's.
  SSL_CTX_set_session_cache_mode(&server, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(&server, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(&server, 0);
  if (files_.mutual()) Verify(server);
  SSL_CTX_set_cert_cb(
      &server,
      [](SSL* connection, void* self) {
        static_cast<ReloadingTls*>(self)->Use(*connection);
        return 1;
      },
      this);
}

void ReloadingTls::Use(SSL& connection) {
  Context context;
  {
    MutexLock lock(mutex_);
    if (watch_.Changed()) {
      auto loaded = Load(files_);
      if (loaded.ok()) {
        context_ = *std::move(loaded);
      } else {
        Log(LogLevel::kError, "the certificate of before goes on",
            {{"because", std::string(loaded.status().message())}});
      }
    }
    context = context_;
  }
  // The connection holds a reference of its own.
  SSL_set_SSL_CTX(&connection, context.get());
}

bool HasCertificate(const SSL& connection) {
  X509* certificate = SSL_get_peer_certificate(&connection);
  if (certificate == nullptr) return false;
  X509_free(certificate);
  return SSL_get_verify_result(&connection) == X509_V_OK;
}

}  // namespace linserve
