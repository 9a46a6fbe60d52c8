#include "access/certificate_watch.h"

#include <string>
#include <utility>

#include "telemetry/log.h"

namespace linserve {

CertificateWatch::CertificateWatch(TlsFiles files, Metrics& metrics, Clock& clock)
    : files_(std::move(files)),
      metrics_(metrics),
      watch_({files_.certificate, files_.private_key, files_.client_ca}, clock) {
  if (files_.enabled()) suspected_ = watch_.IsNews(Read());
}

void CertificateWatch::Look() {
  if (!files_.enabled() || !watch_.Changed()) return;
  const absl::Status status = Read();
  const bool suspected = std::exchange(suspected_, watch_.IsNews(status));
  if (status.ok()) {
    Log(LogLevel::kInfo, "certificate read", {{"file", files_.certificate}});
  } else if (suspected && !suspected_) {
    metrics_.ReloadFailed(Reload::kCertificate);
    Log(LogLevel::kError, "the certificate cannot be read again",
        {{"because", std::string(status.message())}});
  }
}

absl::Status CertificateWatch::Read() {
  const auto expiry = ExpiryOf(files_);
  if (expiry.ok()) metrics_.SetCertificateExpiry(*expiry);
  return expiry.status();
}

}  // namespace linserve
