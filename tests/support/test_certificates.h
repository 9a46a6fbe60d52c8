#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>

#include "access/tls.h"
#include "core/files/pem.h"

namespace linserve {

// Acts as an authority of the test's own, which signs certificates for "localhost" and 127.0.0.1.
class TestAuthority {
 public:
  TestAuthority();

  std::string pem() const;

  struct Signed {
    std::string certificate;
    std::string private_key;
  };
  // Signs a certificate for a server or a client of this name, which is good for so long. With a
  // password the key is encrypted.
  Signed Sign(const std::string& name, std::chrono::seconds valid = std::chrono::hours(24),
              const std::string& password = "") const;

 private:
  PrivateKey key_;
  Certificate certificate_;
};

// Writes a certificate for "server" that the authority has signed, and the authority's own.
void WriteTlsFiles(const TestAuthority& authority, const TlsFiles& files);

}  // namespace linserve
