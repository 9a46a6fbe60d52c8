#include "access/caller.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/status/retry_delay.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

using Seconds = std::chrono::duration<double>;

const char* What(Right right) {
  switch (right) {
    case Right::kInfer:
      return "compute (its \"may\" in the tokens file does not name \"infer\")";
    case Right::kMetrics:
      return "read metrics and status (its \"may\" in the tokens file does not name \"metrics\")";
    case Right::kControl:
      return "load and unload models (its \"may\" in the tokens file does not name \"control\")";
  }
  return "";
}

// Returns the seconds until what is owed is paid.
double Debt(double balance, double rate, double price) {
  return rate > 0 && balance < price ? (price - balance) / rate : 0;
}

// Seconds that a caller is told to wait at most: a day, after which it may ask again.
constexpr double kLongestWait = 86400;

}  // namespace

absl::Status Budget::Spend(int64_t bytes, TimePoint now) {
  MutexLock lock(mutex_);
  if (last_ != TimePoint::min()) {
    const double passed = std::max(0.0, Seconds(now - last_).count());
    requests_ = std::min(std::max(rates_.requests, 1.0), requests_ + passed * rates_.requests);
    bytes_ = std::min(rates_.bytes, bytes_ + passed * rates_.bytes);
  }
  last_ = now;
  const double wait = std::max(Debt(requests_, rates_.requests, 1), Debt(bytes_, rates_.bytes, 0));
  if (wait > 0) {
    const bool by_bytes = Debt(bytes_, rates_.bytes, 0) == wait;
    return RetryAfter(
        absl::ResourceExhaustedError(by_bytes ? "over this token's bytes_per_second"
                                              : "over this token's requests_per_second"),
        std::chrono::ceil<std::chrono::milliseconds>(Seconds(std::min(wait, kLongestWait))));
  }
  requests_ -= 1;
  bytes_ -= static_cast<double>(bytes);
  return absl::OkStatus();
}

void Budget::Owe(int64_t bytes) {
  MutexLock lock(mutex_);
  bytes_ -= static_cast<double>(bytes);
}

Caller::Caller(std::string name)
    : Caller(std::move(name),
             {.infer = true, .metrics = true, .control = true, .best_priority = Priority::kHigh},
             {}, nullptr) {
  has_token_ = false;
}

Caller::Caller(std::string name, Rights rights, std::set<std::string> models,
               std::shared_ptr<Budget> budget)
    : name_(std::move(name)),
      rights_(rights),
      models_(std::move(models)),
      budget_(std::move(budget)) {}

absl::Status Caller::May(Right right) const {
  const bool may = right == Right::kInfer     ? rights_.infer
                   : right == Right::kMetrics ? rights_.metrics
                                              : rights_.control;
  if (may) return absl::OkStatus();
  return absl::PermissionDeniedError("the token " + Quoted(name_) + " may not " + What(right));
}

absl::Status Caller::MayUse(const std::string& model) const {
  if (Sees(model)) return absl::OkStatus();
  return absl::PermissionDeniedError("the token " + Quoted(name_) + " may not use model " +
                                     Quoted(model));
}

absl::Status Caller::Spend(int64_t bytes, TimePoint now) const {
  return budget_ == nullptr ? absl::OkStatus() : budget_->Spend(bytes, now);
}

void Caller::Owe(int64_t bytes) const {
  if (budget_ != nullptr) budget_->Owe(bytes);
}

}  // namespace linserve
