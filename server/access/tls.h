#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "access/file_change.h"
#include "batching/clock.h"
#include "core/mutex.h"

// OpenSSL's own, so that its headers stay in the .cc files.
struct ssl_ctx_st;
struct ssl_st;

namespace linserve {

// PEM files.
struct TlsFiles {
  std::string certificate;  // with those that it is signed by; empty: plain text
  std::string private_key;
  std::string client_ca;  // who callers' certificates must be signed by; empty: they need none

  bool enabled() const { return !certificate.empty(); }
  bool mutual() const { return !client_ca.empty(); }
};

// OK if the files can be served with; INVALID_ARGUMENT names the one that cannot, and why.
absl::Status CheckTlsFiles(const TlsFiles& files);

// Lets a server of OpenSSL's use what the files hold at the time of each handshake. Files that have
// become unusable are not used.
class ReloadingTls {
 public:
  // As CheckTlsFiles().
  static absl::StatusOr<std::unique_ptr<ReloadingTls>> Open(const TlsFiles& files,
                                                            Clock& clock = SteadyClock());
  ~ReloadingTls();

  // Of a server that must not outlive this. A caller's certificate is asked for and checked where
  // client_ca is set, but a caller without any may come in: see HasCertificate().
  void Install(ssl_ctx_st& server);

  // Called by OpenSSL at each handshake.
  void Use(ssl_st& connection);

 private:
  using Context = std::shared_ptr<ssl_ctx_st>;

  ReloadingTls(const TlsFiles& files, Clock& clock)
      : files_(files), watch_({files.certificate, files.private_key, files.client_ca}, clock) {}

  const TlsFiles files_;
  Mutex mutex_;
  FileWatch watch_ LINSERVE_GUARDED_BY(mutex_);
  Context context_ LINSERVE_GUARDED_BY(mutex_);
};

// Whether the caller has shown a certificate, which was then checked.
bool HasCertificate(const ssl_st& connection);

}  // namespace linserve
