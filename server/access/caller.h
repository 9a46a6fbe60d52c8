#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "core/sequence/priority.h"
#include "core/threads/clock.h"
#include "core/threads/mutex.h"

namespace linserve {

enum class Right : uint8_t {
  kInfer,    // embed and infer
  kMetrics,  // read /metrics and the status page
  kControl,  // load and unload models
};

struct Rights {
  bool infer = true;
  bool metrics = false;
  bool control = false;
  Priority best_priority = Priority::kNormal;  // the best that its requests may have
};

// Says what a caller may spend a second; 0 means as much as it likes. A second's worth may be spent
// at once.
struct Rates {
  double requests = 0;
  double bytes = 0;

  bool operator==(const Rates&) const = default;
};

// Holds what is left of a caller's rates. Thread-safe.
class Budget {
 public:
  // Where rates allow less than one request a second, the first one need not be waited for, either.
  explicit Budget(const Rates& rates)
      : rates_(rates),
        requests_(rates.requests > 0 ? std::max(rates.requests, 1.0) : 0),
        bytes_(rates.bytes) {}

  const Rates& rates() const { return rates_; }

  // Spends one request of so many bytes. Returns RESOURCE_EXHAUSTED with a retry delay if too much
  // was spent. A request larger than a second's worth is taken, and paid for by those after it.
  absl::Status Spend(int64_t bytes, TimePoint now);

  // Adds so many bytes to a request that was spent already; the requests after it pay for them.
  void Owe(int64_t bytes);

 private:
  const Rates rates_;
  Mutex mutex_;
  TimePoint last_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  double requests_ ABSL_GUARDED_BY(mutex_);
  double bytes_ ABSL_GUARDED_BY(mutex_);
};

// Says who calls, and what it may do.
class Caller {
 public:
  // Makes a caller who may do everything; `name` is then the address of the caller's machine.
  explicit Caller(std::string name);
  // Makes a caller with these rights. An empty `models` means all models.
  Caller(std::string name, Rights rights, std::set<std::string> models,
         std::shared_ptr<Budget> budget);

  const std::string& name() const { return name_; }
  bool has_token() const { return has_token_; }  // whether the name is that of a token
  const std::shared_ptr<Budget>& budget() const { return budget_; }  // null: no bounds

  // May() and MayUse() return PERMISSION_DENIED, which says what the caller may not do.
  absl::Status May(Right right) const;
  absl::Status MayUse(const std::string& model) const;
  // SeesAll() and Sees() say what the caller is told of: nothing of a model that it may neither use
  // nor load.
  bool SeesAll() const { return models_.empty() && (rights_.infer || rights_.control); }
  bool Sees(const std::string& model) const {
    return (rights_.infer || rights_.control) && (models_.empty() || models_.contains(model));
  }
  // Returns the only model that the caller may use; "" if there may be several.
  std::string OnlyModel() const { return models_.size() == 1 ? *models_.begin() : ""; }
  // Returns the priority that a request gets which asks for one.
  Priority Allowed(Priority asked) const { return std::max(asked, rights_.best_priority); }

  absl::Status Spend(int64_t bytes, TimePoint now) const;
  void Owe(int64_t bytes) const;

 private:
  std::string name_;
  bool has_token_ = true;
  Rights rights_;
  std::set<std::string> models_;
  std::shared_ptr<Budget> budget_;
};

}  // namespace linserve
