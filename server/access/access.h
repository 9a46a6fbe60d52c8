#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "access/file_change.h"
#include "access/token_table.h"
#include "batching/clock.h"
#include "core/mutex.h"
#include "telemetry/metrics.h"

namespace linserve {

// Who may call. Thread-safe.
class Access {
 public:
  // By the tokens of a file, which is read again when it changes; without a path, anybody may.
  // An error says what is wrong with the file. `metrics` must outlive it.
  static absl::StatusOr<std::unique_ptr<Access>> Open(const std::string& path, Metrics& metrics,
                                                      Clock& clock = SteadyClock());

  // Anybody may do anything.
  bool open() const { return path_.empty(); }

  // The caller of an `authorization` header ("" if there is none), from this address as gRPC has
  // it ("ipv4:10.0.0.1:4711") or the address alone. UNAUTHENTICATED says what is expected.
  absl::StatusOr<std::shared_ptr<const Caller>> Authenticate(std::string_view authorization,
                                                             std::string_view peer);

 private:
  Access(std::string path, Metrics& metrics, Clock& clock);
  void ReloadIfChanged() LINSERVE_REQUIRES(mutex_);

  const std::string path_;
  Metrics& metrics_;

  Mutex mutex_;
  FileWatch watch_ LINSERVE_GUARDED_BY(mutex_);
  std::shared_ptr<const TokenTable> tokens_ LINSERVE_GUARDED_BY(mutex_);
};

// The machine's part of an address: "10.0.0.1" of "ipv4:10.0.0.1:4711".
std::string MachineOf(std::string_view peer);

}  // namespace linserve
