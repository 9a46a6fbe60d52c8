#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "access/file_change.h"
#include "access/tls.h"
#include "access/token_table.h"
#include "core/options/options.h"
#include "core/threads/clock.h"
#include "core/threads/mutex.h"
#include "telemetry/metrics.h"

namespace linserve {

// Says who may call, and over what.
struct AccessOptions {
  TlsFiles tls{};             // none: plain text
  std::string tokens_file{};  // empty: anybody may call

  void Bind(OptionTable& table);
};

// Decides who may call. Thread-safe.
class Access {
 public:
  // Makes an Access by the tokens of a file, which is read again when it changes; without a path,
  // anybody may call. An error says what is wrong with the file. `metrics` must outlive the result.
  static absl::StatusOr<std::unique_ptr<Access>> Open(const std::string& path, Metrics& metrics,
                                                      Clock& clock = SteadyClock());

  // Returns true if anybody may do anything.
  bool open() const { return path_.empty(); }

  // Returns the caller of an `authorization` header ("" if there is none), from this address as
  // gRPC has it ("ipv4:10.0.0.1:4711") or the address alone. UNAUTHENTICATED says what is expected.
  absl::StatusOr<std::shared_ptr<const Caller>> Authenticate(std::string_view authorization,
                                                             std::string_view peer);

  // Reads the tokens again if they have changed, as each call does, so that a fault of the file is
  // told while nobody calls, too.
  void Look();

 private:
  Access(std::string path, Metrics& metrics, Clock& clock);
  void ReloadIfChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  Metrics& metrics_;

  Mutex mutex_;
  FileWatch watch_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const TokenTable> tokens_ ABSL_GUARDED_BY(mutex_);
};

// Returns what stands for the machine that an address is of: "10.0.0.1" for "ipv4:10.0.0.1:4711".
// For IPv6 it is the network of 64 bits, "2001:db8::/64", since a machine may use all its
// addresses.
std::string MachineOf(std::string_view peer);

}  // namespace linserve
