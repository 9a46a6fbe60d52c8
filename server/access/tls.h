#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "access/file_change.h"
#include "core/threads/clock.h"
#include "core/threads/mutex.h"

// OpenSSL's types are declared here, so that its headers stay in the .cc files.
struct ssl_ctx_st;
struct ssl_st;

namespace linserve {

// Names PEM files.
struct TlsFiles {
  std::string certificate;  // followed by those that it is signed by; empty: plain text
  std::string private_key;
  std::string client_ca;  // authority that signs callers' certificates; empty: they need none

  bool enabled() const { return !certificate.empty(); }
  bool mutual() const { return !client_ca.empty(); }
};

// Returns OK if the files can be served with; INVALID_ARGUMENT names the one that cannot, and why.
absl::Status CheckTlsFiles(const TlsFiles& files);

// Holds what the files held at one time: a certificate, and the key that belongs to it.
struct TlsContents {
  std::string certificate, private_key, client_ca;  // PEM; client_ca is empty where there is none
  std::shared_ptr<ssl_ctx_st> context;              // of the same
};

// Returns when the first of the certificates in tls_certificate expires; its errors are those of
// CheckTlsFiles(). REQUIRES: enabled().
absl::StatusOr<std::chrono::system_clock::time_point> ExpiryOf(const TlsFiles& files);

// Tells a server what the files hold at the time of each handshake. Files that cannot be used,
// such as a new key whose certificate is not there yet, change nothing. Safe for many threads.
class ReloadingTls {
 public:
  // Reads the files. Its errors are those of CheckTlsFiles().
  static absl::StatusOr<std::unique_ptr<ReloadingTls>> Open(const TlsFiles& files,
                                                            Clock& clock = SteadyClock());
  ~ReloadingTls();

  // Returns the same contents until there are others.
  std::shared_ptr<const TlsContents> Current();

  // Installs the certificates in a server of OpenSSL's, which must not outlive this. A caller's
  // certificate is asked for and checked where client_ca is set, but a caller without any may come
  // in: see HasCertificate().
  void Install(ssl_ctx_st& server);

 private:
  using Contents = std::shared_ptr<const TlsContents>;

  ReloadingTls(const TlsFiles& files, Clock& clock)
      : files_(files), watch_({files.certificate, files.private_key, files.client_ca}, clock) {}

  const TlsFiles files_;
  Mutex mutex_;
  FileWatch watch_ ABSL_GUARDED_BY(mutex_);
  Contents contents_ ABSL_GUARDED_BY(mutex_);
};

// Returns whether the caller has shown a certificate, which was then checked.
bool HasCertificate(const ssl_st& connection);

}  // namespace linserve
