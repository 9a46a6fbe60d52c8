#pragma once

#include <memory>
#include <string>
#include <vector>

// OpenSSL's types are declared here, so that its headers stay in the .cc files.
struct evp_pkey_st;
struct x509_st;

namespace linserve {

using Certificate = std::unique_ptr<x509_st, void (*)(x509_st*)>;
using PrivateKey = std::unique_ptr<evp_pkey_st, void (*)(evp_pkey_st*)>;

// Returns the certificates in a text in PEM. None if there are none, or if one of them is broken:
// PemFault() says why.
std::vector<Certificate> CertificatesIn(const std::string& pem);

// Returns the private key in a text in PEM; null if there is none that can be read without a
// password.
PrivateKey PrivateKeyIn(const std::string& pem);

// Says whether the key is that of the certificate.
bool BelongTogether(const Certificate& certificate, const PrivateKey& key);

// Returns why OpenSSL could not do what it was last asked for, and forgets it: ": no start line";
// "" if it did not say.
std::string PemFault();

}  // namespace linserve
