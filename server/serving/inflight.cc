#include "serving/inflight.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/status/limit_met.h"
#include "core/system/memory.h"

namespace linserve {

Inflight::Reservation::Reservation(std::shared_ptr<Inflight> owner, std::string caller,
                                   int64_t requests, int64_t bytes, int64_t besides)
    : owner_(std::move(owner)),
      caller_(std::move(caller)),
      requests_(requests),
      bytes_(bytes),
      besides_(besides) {}

void InflightLimits::Bind(OptionTable& table) {
  constexpr int64_t kMany = int64_t{1} << 40;
  table.Integer(
      "max_concurrent_requests", max_requests, 1, kMany,
      "How many requests may be in flight, from arrival to the last answer, over all models; "
      "more are refused with RESOURCE_EXHAUSTED");
  table.Live();
  table.Integer(
      "max_concurrent_requests_per_caller", max_requests_per_caller, 0, kMany,
      "How many of them one token may have, or one address where there are no tokens; 0: half "
      "of all");
  table.Live();
  table.Bytes("max_inflight_bytes", max_bytes, 0, int64_t{1} << 50,
              "How many bytes these requests and their results may take; 0: what the memory plan "
              "leaves for them, a quarter of the process's memory at most");
  table.Live();
  table.Bytes("max_inflight_bytes_per_caller", max_bytes_per_caller, 0, int64_t{1} << 50,
              "How many of those bytes one caller may take; 0: half of all");
  table.Live();
}

InflightLimits InflightLimits::Resolved() const {
  InflightLimits resolved = *this;
  if (max_bytes == 0) resolved.max_bytes = MemoryBytes() / 4;
  if (max_requests_per_caller == 0) {
    resolved.max_requests_per_caller = std::max<int64_t>(1, max_requests / 2);
  }
  if (max_bytes_per_caller == 0) resolved.max_bytes_per_caller = resolved.max_bytes / 2;
  return resolved;
}

Inflight::Inflight(const InflightLimits& limits, Metrics& metrics) : metrics_(metrics) {
  SetLimits(limits);
}

void Inflight::SetLimits(const InflightLimits& limits) {
  MutexLock lock(mutex_);
  limits_ = limits.Resolved();
  metrics_.SetMaxInflightBytes(limits_.max_bytes);
}

Inflight::Reservation& Inflight::Reservation::operator=(Reservation&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(caller_, other.caller_);
  std::swap(requests_, other.requests_);
  std::swap(bytes_, other.bytes_);
  std::swap(besides_, other.besides_);
  return *this;
}

absl::Status Inflight::Reservation::Grow(int64_t bytes) {
  absl::Status status = owner_->Grow(caller_, bytes_ + besides_, bytes);
  if (status.ok()) bytes_ += bytes;
  return status;
}

Inflight::Reservation::~Reservation() {
  if (owner_ != nullptr) owner_->Release(caller_, requests_, bytes_);
}

absl::StatusOr<Inflight::Reservation> Inflight::Reserve(const std::string& caller, int64_t bytes,
                                                        int64_t besides) {
  MutexLock lock(mutex_);
  const auto found = callers_.find(caller);
  const Use of_caller = found == callers_.end() ? Use{} : found->second;
  absl::Status status = CheckRequests(of_caller);
  if (status.ok()) status = CheckBytes(of_caller, besides, bytes);
  if (!status.ok()) return status;
  ++requests_ever_;
  return Take(caller, 1, bytes, besides);
}

Inflight::Reservation Inflight::ReserveBytes(const std::string& caller) {
  MutexLock lock(mutex_);
  return Take(caller, 0, 0, 0);
}

absl::StatusOr<Inflight::Reservation> Inflight::ReserveBody(const std::string& caller,
                                                            int64_t most) {
  MutexLock lock(mutex_);
  const auto found = callers_.find(caller);
  const int64_t bodies =
      found == callers_.end() ? 0 : found->second.reservations - found->second.requests;
  if (bodies < most) return Take(caller, 0, 0, 0);
  return Refuse(Refusal::kCallerInflight,
                {"what one caller may have over HTTP at once", most, bodies}, 1);
}

Inflight::Reservation Inflight::Take(const std::string& caller, int64_t requests, int64_t bytes,
                                     int64_t besides) {
  std::string name = caller;  // where memory is missing for this, nothing was counted yet
  for (Use* use : {&total_, &callers_[caller]}) {
    use->reservations += 1;
    use->requests += requests;
    use->bytes += bytes;
  }
  Publish();
  return Reservation(shared_from_this(), std::move(name), requests, bytes, besides);
}

int64_t Inflight::most_requests() const {
  MutexLock lock(mutex_);
  return limits_.max_requests;
}

int64_t Inflight::most_bytes() const {
  MutexLock lock(mutex_);
  return std::min(limits_.max_bytes, limits_.max_bytes_per_caller);
}

int64_t Inflight::requests() const {
  MutexLock lock(mutex_);
  return total_.requests;
}

int64_t Inflight::requests_ever() const {
  MutexLock lock(mutex_);
  return requests_ever_;
}

absl::Status Inflight::Grow(const std::string& caller, int64_t held, int64_t bytes) {
  MutexLock lock(mutex_);
  Use& of_caller = callers_[caller];
  if (absl::Status status = CheckBytes(of_caller, held, bytes); !status.ok()) return status;
  total_.bytes += bytes;
  of_caller.bytes += bytes;
  Publish();
  return absl::OkStatus();
}

// Refuses a request for the limit that was reached. More servers help where this one is full, and
// neither a caller that has its share nor a request that is too large: those count apart.
absl::Status Inflight::Refuse(Refusal reason, const Limit& limit, int64_t asked) const {
  const int64_t most = std::numeric_limits<int64_t>::max();
  absl::Status status =
      LimitMet(std::to_string(limit.in_flight - limit.held) + " in flight",
               asked > most - limit.held ? most : limit.held + asked, limit.name, limit.value);
  metrics_.Refused(IsNeverFits(status) ? Refusal::kCallerInflight : reason);
  return status;
}

absl::Status Inflight::CheckRequests(const Use& of_caller) const {
  if (total_.requests >= limits_.max_requests) {
    return Refuse(Refusal::kInflight,
                  {"max_concurrent_requests", limits_.max_requests, total_.requests}, 1);
  }
  if (of_caller.requests >= limits_.max_requests_per_caller) {
    return Refuse(
        Refusal::kCallerInflight,
        {"max_concurrent_requests_per_caller", limits_.max_requests_per_caller, of_caller.requests},
        1);
  }
  return absl::OkStatus();
}

absl::Status Inflight::CheckBytes(const Use& of_caller, int64_t held, int64_t bytes) const {
  // The limits are not compared with a sum, which could overflow.
  if (bytes > limits_.max_bytes - total_.bytes) {
    return Refuse(Refusal::kInflight, {"max_inflight_bytes", limits_.max_bytes, total_.bytes, held},
                  bytes);
  }
  if (bytes > limits_.max_bytes_per_caller - of_caller.bytes) {
    return Refuse(
        Refusal::kCallerInflight,
        {"max_inflight_bytes_per_caller", limits_.max_bytes_per_caller, of_caller.bytes, held},
        bytes);
  }
  return absl::OkStatus();
}

void Inflight::Release(const std::string& caller, int64_t requests, int64_t bytes) {
  MutexLock lock(mutex_);
  const auto of_caller = callers_.find(caller);
  for (Use* use : {&total_, &of_caller->second}) {
    use->reservations -= 1;
    use->requests -= requests;
    use->bytes -= bytes;
  }
  if (of_caller->second.reservations == 0) callers_.erase(of_caller);
  Publish();
}

void Inflight::Publish() const { metrics_.SetInflightBytes(total_.bytes); }

}  // namespace linserve
