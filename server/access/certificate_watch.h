#pragma once

#include "absl/status/status.h"
#include "access/file_change.h"
#include "access/tls.h"
#include "core/threads/clock.h"
#include "telemetry/metrics.h"

namespace linserve {

// Tells the metrics when the certificate expires that connections get, over gRPC and HTTP, and
// metrics and log whether its files could be read again. Who serves reads them by itself.
class CertificateWatch {
 public:
  // Nothing is told without a certificate. `metrics` must outlive it.
  CertificateWatch(TlsFiles files, Metrics& metrics, Clock& clock = SteadyClock());

  // Looks whether the files have changed. Call it about once a second.
  void Look();

 private:
  absl::Status Read();

  const TlsFiles files_;
  Metrics& metrics_;
  FileWatch watch_;
  // Whether the last look found a fault that is new. One that the next look finds, too, is told: a
  // certificate and its key are replaced one after the other.
  bool suspected_ = false;
};

}  // namespace linserve
