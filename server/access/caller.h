#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "batching/clock.h"
#include "core/mutex.h"
#include "core/priority.h"

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
  Priority best_priority = Priority::kNormal;  // that its requests may have
};

// What a caller may spend a second; 0: as much as it likes. A second's worth may be spent at once.
struct Rates {
  double requests = 0;
  double bytes = 0;

  bool operator==(const Rates&) const = default;
};

// What is left of a caller's rates. Thread-safe.
class Budget {
 public:
  explicit Budget(const Rates& rates)
      : rates_(rates), requests_(rates.requests), bytes_(rates.bytes) {}

  const Rates& rates() const { return rates_; }

  // One request of so many bytes. RESOURCE_EXHAUSTED with a retry delay if too much was spent; a
  // request larger than a second's worth is taken, and paid for by those after it.
  absl::Status Spend(int64_t bytes, TimePoint now);

 private:
  const Rates rates_;
  Mutex mutex_;
  TimePoint last_ LINSERVE_GUARDED_BY(mutex_) = TimePoint::min();
  double requests_ LINSERVE_GUARDED_BY(mutex_);
  double bytes_ LINSERVE_GUARDED_BY(mutex_);
};

// Who calls, and what it may do.
class Caller {
 public:
  // Who may do everything; `name` is then the address of the caller's machine.
  explicit Caller(std::string name);
  // `models` empty: all of them.
  Caller(std::string name, Rights rights, std::set<std::string> models,
         std::shared_ptr<Budget> budget);

  const std::string& name() const { return name_; }
  const std::shared_ptr<Budget>& budget() const { return budget_; }  // null: no bounds

  // PERMISSION_DENIED says what the caller may not.
  absl::Status May(Right right) const;
  absl::Status MayUse(const std::string& model) const;
  // What it may neither use nor load, it is told nothing of.
  bool SeesAll() const { return models_.empty() && (rights_.infer || rights_.control); }
  bool Sees(const std::string& model) const {
    return (rights_.infer || rights_.control) && (models_.empty() || models_.contains(model));
  }
  // What a request that asks for a priority gets.
  Priority Allowed(Priority asked) const { return std::max(asked, rights_.best_priority); }

  absl::Status Spend(int64_t bytes, TimePoint now) const;

 private:
  std::string name_;
  Rights rights_;
  std::set<std::string> models_;
  std::shared_ptr<Budget> budget_;
};

}  // namespace linserve
