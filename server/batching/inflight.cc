#include "batching/inflight.h"

#include <utility>

#include "batching/limit_met.h"

namespace linserve {
namespace {

absl::Status Full(const char* limit, int64_t value, int64_t in_flight, int64_t asked) {
  return LimitMet(std::to_string(in_flight) + " in flight", asked, limit, value);
}

}  // namespace

Inflight::Reservation::Reservation(std::shared_ptr<Inflight> owner, std::string caller,
                                   int64_t bytes)
    : owner_(std::move(owner)), caller_(std::move(caller)), bytes_(bytes) {}

Inflight::Reservation& Inflight::Reservation::operator=(Reservation&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(caller_, other.caller_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Inflight::Reservation::~Reservation() {
  if (owner_ != nullptr) owner_->Release(caller_, bytes_);
}

absl::StatusOr<Inflight::Reservation> Inflight::Reserve(const std::string& caller, int64_t bytes) {
  MutexLock lock(mutex_);
  const auto found = callers_.find(caller);
  if (absl::Status status = Admit(found == callers_.end() ? Use{} : found->second, bytes);
      !status.ok()) {
    metrics_.Refused(Refusal::kInflight);
    return status;
  }
  for (Use* use : {&total_, &callers_[caller]}) {
    use->requests += 1;
    use->bytes += bytes;
  }
  ++requests_ever_;
  Publish();
  return Reservation(shared_from_this(), caller, bytes);
}

int64_t Inflight::requests() const {
  MutexLock lock(mutex_);
  return total_.requests;
}

int64_t Inflight::requests_ever() const {
  MutexLock lock(mutex_);
  return requests_ever_;
}

absl::Status Inflight::Admit(const Use& of_caller, int64_t bytes) const {
  if (total_.requests >= limits_.max_requests) {
    return Full("max_concurrent_requests", limits_.max_requests, total_.requests, 1);
  }
  if (of_caller.requests >= limits_.max_requests_per_caller) {
    return Full("max_concurrent_requests_per_caller", limits_.max_requests_per_caller,
                of_caller.requests, 1);
  }
  if (total_.bytes + bytes > limits_.max_bytes) {
    return Full("max_inflight_bytes", limits_.max_bytes, total_.bytes, bytes);
  }
  if (of_caller.bytes + bytes > limits_.max_bytes_per_caller) {
    return Full("max_inflight_bytes_per_caller", limits_.max_bytes_per_caller, of_caller.bytes,
                bytes);
  }
  return absl::OkStatus();
}

void Inflight::Release(const std::string& caller, int64_t bytes) {
  MutexLock lock(mutex_);
  const auto of_caller = callers_.find(caller);
  for (Use* use : {&total_, &of_caller->second}) {
    use->requests -= 1;
    use->bytes -= bytes;
  }
  if (of_caller->second.requests == 0) callers_.erase(of_caller);
  Publish();
}

void Inflight::Publish() const { metrics_.SetInflightBytes(total_.bytes); }

}  // namespace linserve
