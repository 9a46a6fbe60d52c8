#include "core/files/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace linserve {
namespace {

using Source = std::unique_ptr<BIO, int (*)(BIO*)>;

Source SourceOf(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

// Refuses to decrypt: OpenSSL would ask for the password at the terminal.
int NoPassword(char* /*into*/, int /*size*/, int /*writing*/, void* /*unused*/) { return -1; }

}  // namespace

std::vector<Certificate> CertificatesIn(const std::string& pem) {
  ERR_clear_error();
  std::vector<Certificate> certificates;
  const Source source = SourceOf(pem);
  while (X509* next = PEM_read_bio_X509(source.get(), nullptr, NoPassword, nullptr)) {
    certificates.emplace_back(next, X509_free);
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) return {};
  if (!certificates.empty()) ERR_clear_error();
  return certificates;
}

PrivateKey PrivateKeyIn(const std::string& pem) {
  ERR_clear_error();
  const Source source = SourceOf(pem);
  return {PEM_read_bio_PrivateKey(source.get(), nullptr, NoPassword, nullptr), EVP_PKEY_free};
}

bool BelongTogether(const Certificate& certificate, const PrivateKey& key) {
  ERR_clear_error();
  return X509_check_private_key(certificate.get(), key.get()) == 1;
}

std::string PemFault() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "" : std::string(": ") + reason;
}

}  // namespace linserve
