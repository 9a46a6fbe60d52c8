#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/options/options.h"
#include "core/threads/mutex.h"
#include "telemetry/metrics.h"

namespace linserve {

// Bounds what may be in flight, over all models and for one caller. A request is in flight from its
// arrival until its last answer is written.
struct InflightLimits {
  int64_t max_requests = 65536;
  int64_t max_requests_per_caller = 0;  // 0: half of all
  int64_t max_bytes = 0;                // 0: a quarter of the memory that the process may use
  int64_t max_bytes_per_caller = 0;     // 0: half of all

  void Bind(OptionTable& table);

  // Returns the limits with the values that the zeros stand for.
  InflightLimits Resolved() const;
};

// Counts the requests in flight, and the bytes that they and their results need. Thread-safe. It is
// shared, because a request may outlive its server.
class Inflight : public std::enable_shared_from_this<Inflight> {
 public:
  // `metrics` must outlive it.
  Inflight(const InflightLimits& limits, Metrics& metrics);

  // Holds the place of one request; its destructor gives the place back.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept = default;
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation();

    // Adds so many bytes. RESOURCE_EXHAUSTED leaves the reservation as it is. REQUIRES: it holds a
    // place.
    absl::Status Grow(int64_t bytes);

   private:
    friend class Inflight;
    Reservation(std::shared_ptr<Inflight> owner, std::string caller, int64_t requests,
                int64_t bytes, int64_t besides);

    std::shared_ptr<Inflight> owner_;  // null: this holds no place
    std::string caller_;
    int64_t requests_ = 0;
    int64_t bytes_ = 0;
    int64_t besides_ = 0;
  };

  // Reserves a place. RESOURCE_EXHAUSTED names the limit that was met. `besides` are the bytes that
  // the request has in another reservation: whatever does not fit because of them never will.
  absl::StatusOr<Reservation> Reserve(const std::string& caller, int64_t bytes,
                                      int64_t besides = 0);

  // Reserves for what is not a request yet. It holds no bytes at first; Grow() adds them.
  Reservation ReserveBytes(const std::string& caller);

  // Reserves likewise for a request whose body is to come, of which a caller has at most so many.
  // RESOURCE_EXHAUSTED if it has them.
  absl::StatusOr<Reservation> ReserveBody(const std::string& caller, int64_t most);

  // Bounds what may be in flight from now on. What is in flight already goes on.
  void SetLimits(const InflightLimits& limits);

  int64_t most_requests() const;
  int64_t most_bytes() const;     // that one caller may ever hold
  int64_t requests() const;       // requests in flight at this moment
  int64_t requests_ever() const;  // requests that were ever given a place

 private:
  struct Use {
    int64_t reservations = 0;
    int64_t requests = 0;
    int64_t bytes = 0;
  };

  // Says how far a limit is used. `held` of `in_flight` are the asking request's own.
  struct Limit {
    const char* name;
    int64_t value;
    int64_t in_flight;
    int64_t held = 0;
  };

  Reservation Take(const std::string& caller, int64_t requests, int64_t bytes, int64_t besides)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(const std::string& caller, int64_t requests, int64_t bytes);
  // Adds bytes to a reservation of a request that holds `held` already.
  absl::Status Grow(const std::string& caller, int64_t held, int64_t bytes);
  absl::Status Refuse(Refusal reason, const Limit& limit, int64_t asked) const;
  absl::Status CheckRequests(const Use& of_caller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks the limits. `held` are those of the bytes in use that belong to the asking request.
  absl::Status CheckBytes(const Use& of_caller, int64_t held, int64_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Metrics& metrics_;

  mutable Mutex mutex_;
  InflightLimits limits_ ABSL_GUARDED_BY(mutex_);  // resolved
  Use total_ ABSL_GUARDED_BY(mutex_);
  int64_t requests_ever_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Use> callers_ ABSL_GUARDED_BY(mutex_);  // callers with reservations
};

}  // namespace linserve
