#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/sequence/item.h"
#include "core/threads/mutex.h"

namespace linserve {

// Remembers what is delivered for each sequence of a request.
class RecordingSink : public ResultSink {
 public:
  using Result = absl::StatusOr<ItemResult>;

  void Deliver(size_t index, Result result) override {
    MutexLock lock(mutex_);
    results_[index].push_back(std::move(result));
    ++delivered_;
    changed_.NotifyAll();
  }
  void Report(size_t index, const ItemProgress& progress) override {
    MutexLock lock(mutex_);
    reports_[index].push_back(progress);
  }
  bool Abandoned() const override { return abandoned_; }

  // Lets the caller leave.
  void Abandon() { abandoned_ = true; }

  void AwaitDeliveries(size_t count) const {
    MutexLock lock(mutex_);
    while (delivered_ < count) changed_.Wait(lock);
  }

  size_t delivered() const {
    MutexLock lock(mutex_);
    return delivered_;
  }

  // Returns all that was delivered for a sequence: one result, or something is wrong.
  std::vector<Result> Of(size_t index) const {
    MutexLock lock(mutex_);
    const auto found = results_.find(index);
    return found == results_.end() ? std::vector<Result>() : found->second;
  }

  std::vector<ItemProgress> ReportsOf(size_t index) const {
    MutexLock lock(mutex_);
    const auto found = reports_.find(index);
    return found == reports_.end() ? std::vector<ItemProgress>() : found->second;
  }

  // Waits for the result of a sequence.
  Result Await(size_t index) const {
    MutexLock lock(mutex_);
    while (!results_.contains(index)) changed_.Wait(lock);
    return results_.at(index).front();
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::map<size_t, std::vector<Result>> results_ ABSL_GUARDED_BY(mutex_);
  std::map<size_t, std::vector<ItemProgress>> reports_ ABSL_GUARDED_BY(mutex_);
  size_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> abandoned_ = false;
};

}  // namespace linserve
