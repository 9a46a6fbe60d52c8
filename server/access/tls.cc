#include "access/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "core/files/file.h"
#include "core/files/pem.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

// Returns what a file of a size that certificates have holds. OpenSSL would wait for a pipe and
// read without an end, for as long as a handshake waits.
absl::StatusOr<std::string> ReadPem(const std::string& what, const std::string& path) {
  constexpr size_t kLongest = 4 << 20;  // all authorities that browsers know take a quarter
  auto text = ReadFile(path, kLongest);
  if (text.ok()) return text;
  return absl::Status(text.status().code(), what + ": " + std::string(text.status().message()));
}

absl::Status Unusable(const std::string& what, const std::string& path) {
  return absl::InvalidArgumentError(what + " " + path + " cannot be used" + PemFault() +
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

bool UseCertificate(SSL_CTX& context, const std::string& pem) {
  const auto certificates = CertificatesIn(pem);
  if (certificates.empty()) return false;
  if (SSL_CTX_use_certificate(&context, certificates[0].get()) != 1) return false;
  for (size_t i = 1; i < certificates.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(&context, certificates[i].get()) != 1) return false;
  }
  return true;
}

// The key must be that of the certificate.
bool UseKey(SSL_CTX& context, const std::string& pem) {
  const PrivateKey key = PrivateKeyIn(pem);
  return key != nullptr && SSL_CTX_use_PrivateKey(&context, key.get()) == 1 &&
         SSL_CTX_check_private_key(&context) == 1;
}

bool UseAuthorities(SSL_CTX& context, const std::string& pem) {
  const auto authorities = CertificatesIn(pem);
  for (const Certificate& authority : authorities) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get()) != 1) return false;
  }
  return !authorities.empty();
}

absl::StatusOr<std::shared_ptr<const TlsContents>> Load(const TlsFiles& files) {
  if (files.private_key.empty()) {
    return absl::InvalidArgumentError("tls_certificate is set, but tls_private_key is not");
  }
  auto certificate = ReadPem("tls_certificate", files.certificate);
  if (!certificate.ok()) return certificate.status();
  auto private_key = ReadPem("tls_private_key", files.private_key);
  if (!private_key.ok()) return private_key.status();
  auto client_ca = files.mutual() ? ReadPem("tls_client_ca", files.client_ca) : "";
  if (!client_ca.ok()) return client_ca.status();
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return absl::ResourceExhaustedError("no memory to read certificates");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (!UseCertificate(*context, *certificate)) {
    return Unusable("tls_certificate", files.certificate);
  }
  if (!UseKey(*context, *private_key)) {
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
      return absl::InvalidArgumentError("tls_private_key " + files.private_key +
                                        " is not the key of tls_certificate " + files.certificate);
    }
    return Unusable("tls_private_key", files.private_key);
  }
  if (files.mutual()) {
    if (!UseAuthorities(*context, *client_ca)) return Unusable("tls_client_ca", files.client_ca);
    Verify(*context);
  }
  return std::make_shared<const TlsContents>(TlsContents{
      *std::move(certificate), *std::move(private_key), *std::move(client_ca), context});
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  if (files.enabled()) return Load(files).status();
  if (files.private_key.empty() && files.client_ca.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "tls_private_key and tls_client_ca mean nothing without tls_certificate");
}

absl::StatusOr<std::chrono::system_clock::time_point> ExpiryOf(const TlsFiles& files) {
  const auto contents = Load(files);
  if (!contents.ok()) return contents.status();
  SSL_CTX* context = (*contents)->context.get();
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  auto first = EndOf(*SSL_CTX_get0_certificate(context));
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    first = std::min(first, EndOf(*sk_X509_value(chain, i)));
  }
  return first;
}

absl::StatusOr<std::unique_ptr<ReloadingTls>> ReloadingTls::Open(const TlsFiles& files,
                                                                 Clock& clock) {
  std::unique_ptr<ReloadingTls> tls(new ReloadingTls(files, clock));
  auto contents = Load(files);
  if (!contents.ok()) return contents.status();
  MutexLock lock(tls->mutex_);
  tls->contents_ = *std::move(contents);
  return tls;
}

ReloadingTls::~ReloadingTls() = default;

std::shared_ptr<const TlsContents> ReloadingTls::Current() {
  MutexLock lock(mutex_);
  if (watch_.Changed()) {
    auto loaded = Load(files_);
    if (watch_.IsNews(loaded.status())) {
      Log(LogLevel::kError, "the certificate of before goes on",
          {{"because", std::string(loaded.status().message())}});
    }
    if (loaded.ok()) contents_ = *std::move(loaded);
  }
  return contents_;
}

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
        // The connection holds a reference of its own.
        SSL_set_SSL_CTX(connection, static_cast<ReloadingTls*>(self)->Current()->context.get());
        return 1;
      },
      this);
}

bool HasCertificate(const SSL& connection) {
  X509* certificate = SSL_get_peer_certificate(&connection);
  if (certificate == nullptr) return false;
  X509_free(certificate);
  return SSL_get_verify_result(&connection) == X509_V_OK;
}

}  // namespace linserve
