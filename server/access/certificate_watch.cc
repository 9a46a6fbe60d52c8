#include "access/certificate_watch.h"

#include <utility>

namespace linserve {

CertificateWatch::CertificateWatch(TlsFiles files, Metrics& metrics, Clock& clock)
    : files_(std::move(files)),
      metrics_(metrics),
      watch_({files_.certificate, files_.private_key, files_.client_ca}, clock) {
  if (files_.enabled()) Tell();
}

void CertificateWatch::Look() {
  if (files_.enabled() && watch_.Changed()) Tell();
}

void CertificateWatch::Tell() {
  const auto expiry = ExpiryOf(files_);
  if (expiry.ok()) {
    metrics_.SetCertificateExpiry(*expiry);
  } else {
    metrics_.ReloadFailed(Reload::kCertificate);
  }
}

}  // namespace linserve
