#include "support/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>

#include "support/test_files.h"

namespace linserve {
namespace {

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(memory);
  return text;
}

std::string PemOf(X509* certificate) {
  BIO* memory = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(memory, certificate);
  return TextOf(memory);
}

void Extend(X509* certificate, int what, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Makes an unsigned certificate that is good for so long.
X509* NewCertificate(const std::string& name, EVP_PKEY* key, std::chrono::seconds valid) {
  static std::atomic<long> serial{1};
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), valid.count());
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

}  // namespace

TestAuthority::TestAuthority()
    : key_(EVP_EC_gen("P-256"), EVP_PKEY_free),
      certificate_(NewCertificate("test authority", key_.get(), std::chrono::hours(24)),
                   X509_free) {
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  Extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(certificate_.get(), key_.get(), EVP_sha256());
}

std::string TestAuthority::pem() const { return PemOf(certificate_.get()); }

TestAuthority::Signed TestAuthority::Sign(const std::string& name, std::chrono::seconds valid,
                                          const std::string& password) const {
  const PrivateKey key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Certificate certificate(NewCertificate(name, key.get(), valid), X509_free);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  Extend(certificate.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  X509_sign(certificate.get(), key_.get(), EVP_sha256());
  BIO* memory = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(memory, key.get(), password.empty() ? nullptr : EVP_aes_128_cbc(),
                           reinterpret_cast<const unsigned char*>(password.data()),
                           static_cast<int>(password.size()), nullptr, nullptr);
  return {PemOf(certificate.get()), TextOf(memory)};
}

void WriteTlsFiles(const TestAuthority& authority, const TlsFiles& files) {
  const auto server = authority.Sign("server");
  WriteAll(files.certificate, server.certificate);
  WriteAll(files.private_key, server.private_key);
  WriteAll(files.client_ca, authority.pem());
}

}  // namespace linserve
