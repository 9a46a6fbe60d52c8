#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "telemetry/metrics.h"

namespace linserve {

// What may be in flight at most, from a request's arrival until its last answer is written: over
// all models, and of one caller.
struct InflightLimits {
  int64_t max_requests = 65536;
  int64_t max_bytes = int64_t{1} << 32;
  int64_t max_requests_per_caller = 65536;
  int64_t max_bytes_per_caller = int64_t{1} << 32;
};

// The requests in flight, and the bytes that they and their results need. Thread-safe. Shared: a
// request may outlive its server.
class Inflight : public std::enable_shared_from_this<Inflight> {
 public:
  // `metrics` must outlive it.
  Inflight(const InflightLimits& limits, Metrics& metrics);

  // The place of one request, given back by the destructor.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept = default;
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation();

    // So many bytes more. RESOURCE_EXHAUSTED leaves it as it is. REQUIRES: it holds a place.
    absl::Status Grow(int64_t bytes);

   private:
    friend class Inflight;
    Reservation(std::shared_ptr<Inflight> owner, std::string caller, int64_t requests,
                int64_t bytes);

    std::shared_ptr<Inflight> owner_;  // null: it holds none
    std::string caller_;
    int64_t requests_ = 0;
    int64_t bytes_ = 0;
  };

  // RESOURCE_EXHAUSTED names the limit that it met.
  absl::StatusOr<Reservation> Reserve(const std::string& caller, int64_t bytes);

  // For what is not a request yet: no bytes at first, see Grow().
  Reservation ReserveBytes(const std::string& caller);

  double share() const;           // of max_bytes that is taken
  int64_t requests() const;       // at this moment
  int64_t requests_ever() const;  // that were given a place

 private:
  struct Use {
    int64_t reservations = 0;
    int64_t requests = 0;
    int64_t bytes = 0;
  };

  Reservation Take(const std::string& caller, int64_t requests, int64_t bytes)
      LINSERVE_REQUIRES(mutex_);
  void Release(const std::string& caller, int64_t requests, int64_t bytes);
  // `held` by the one that grows.
  absl::Status Grow(const std::string& caller, int64_t held, int64_t bytes);
  absl::Status CheckRequests(const Use& of_caller) const LINSERVE_REQUIRES(mutex_);
  // `held`: of the bytes in use those of the one that asks for more.
  absl::Status CheckBytes(const Use& of_caller, int64_t held, int64_t bytes) const
      LINSERVE_REQUIRES(mutex_);
  void Publish() const LINSERVE_REQUIRES(mutex_);

  const InflightLimits limits_;
  Metrics& metrics_;

  mutable Mutex mutex_;
  Use total_ LINSERVE_GUARDED_BY(mutex_);
  int64_t requests_ever_ LINSERVE_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Use> callers_ LINSERVE_GUARDED_BY(mutex_);  // with reservations
};

}  // namespace linserve
