#include "engine/result_cache.h"

#include <algorithm>
#include <utility>

namespace linserve {
namespace {

void Append(const void* bytes, size_t size, std::string& key) {
  key.append(reinterpret_cast<const char*>(&size), sizeof(size));
  key.append(static_cast<const char*>(bytes), size);
}

// Everything that a result depends on. No hash: of two sequences that differ, neither may get the
// other's result.
std::string KeyOf(const Item& item) {
  std::string key;
  for (const std::string& output : item.options.outputs) Append(output.data(), output.size(), key);
  key += "/";
  for (const int64_t option :
       {static_cast<int64_t>(item.options.pooling), static_cast<int64_t>(item.options.normalize),
        static_cast<int64_t>(item.options.dtype)}) {
    key += std::to_string(option) + " ";
  }
  for (const auto& [name, tensor] : item.inputs) {
    Append(name.data(), name.size(), key);
    key += std::to_string(static_cast<int64_t>(tensor.dtype()));
    Append(tensor.shape().data(), tensor.shape().size() * sizeof(int64_t), key);
    const size_t size = key.size();
    key.resize(size + tensor.byte_size());  // which the shape and type tell
    tensor.CopyTo(reinterpret_cast<std::byte*>(key.data() + size));
  }
  return key;
}

// In memory of its own: a result may be a piece of a whole batch's, which it would keep.
ItemResult CopyOf(const ItemResult& result) {
  ItemResult copy = result;
  for (auto& [name, tensor] : copy.outputs) {
    auto [own, bytes] = Tensor::Allocate(tensor.dtype(), tensor.shape());
    tensor.CopyTo(bytes);
    tensor = own;
  }
  return copy;
}

}  // namespace

// One computation, and all who wait for it.
class ResultCache::Flight : public ResultSink {
 public:
  Flight(std::shared_ptr<ResultCache> cache, std::string key)
      : cache_(std::move(cache)), key_(std::move(key)) {}

  // False: it has landed.
  bool Join(Pending& pending) {
    MutexLock lock(mutex_);
    if (landed_) return false;
    callers_.push_back(
        {std::move(pending.delivery), pending.deadline, pending.item.report_progress});
    return true;
  }

  void ReleaseFirst() {
    MutexLock lock(mutex_);
    callers_.front().delivery.Release();
    callers_.erase(callers_.begin());
  }

  void Deliver(size_t /*index*/, absl::StatusOr<ItemResult> result) override {
    cache_->Landed(key_, result);
    std::vector<Caller> callers;
    {
      MutexLock lock(mutex_);
      landed_ = true;
      callers.swap(callers_);
    }
    for (Caller& caller : callers) caller.delivery.Complete(result);
  }

  void Report(size_t /*index*/, const ItemProgress& progress) override {
    MutexLock lock(mutex_);
    for (const Caller& caller : callers_) {
      if (caller.wants_progress) caller.delivery.Report(progress);
    }
  }

  bool Abandoned() const override {
    const TimePoint now = cache_->clock_.Now();
    MutexLock lock(mutex_);
    return std::all_of(callers_.begin(), callers_.end(), [&](const Caller& caller) {
      return caller.deadline <= now || caller.delivery.Abandoned();
    });
  }

 private:
  struct Caller {
    Delivery delivery;
    TimePoint deadline;
    bool wants_progress;
  };

  const std::shared_ptr<ResultCache> cache_;
  const std::string key_;
  mutable Mutex mutex_;
  std::vector<Caller> callers_ LINSERVE_GUARDED_BY(mutex_);
  bool landed_ LINSERVE_GUARDED_BY(mutex_) = false;
};

std::optional<ItemResult> ResultCache::Admit(std::optional<Pending>& pending) {
  const std::string key = KeyOf(pending->item);
  MutexLock lock(mutex_);
  if (const auto found = found_.find(key); found != found_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    metrics_.CacheLookup(CacheOutcome::kHit);
    return found->second->result;
  }
  std::weak_ptr<Flight>& slot = flights_[key];
  if (const auto flight = slot.lock(); flight != nullptr && flight->Join(*pending)) {
    metrics_.CacheLookup(CacheOutcome::kJoined);
    pending.reset();
    return std::nullopt;
  }
  const auto flight = std::make_shared<Flight>(shared_from_this(), key);
  flight->Join(*pending);
  slot = flight;
  pending->delivery = Delivery(flight, 0);
  pending->deadline = TimePoint::max();  // each caller has its own
  pending->item.report_progress = true;  // for those who ask, now or later
  pending->flight = flight;
  metrics_.CacheLookup(CacheOutcome::kMiss);
  return std::nullopt;
}

void ResultCache::Refuse(Pending& pending, const absl::Status& status, bool with_request) {
  if (with_request) static_cast<Flight&>(*pending.flight).ReleaseFirst();
  pending.delivery.Complete(status);
}

void ResultCache::Landed(const std::string& key, const absl::StatusOr<ItemResult>& result) {
  std::optional<ItemResult> copy;
  if (result.ok()) copy = CopyOf(*result);
  MutexLock lock(mutex_);
  flights_.erase(key);
  if (copy) Insert(key, *copy);
  metrics_.SetCacheBytes(bytes_);
}

void ResultCache::Insert(const std::string& key, const ItemResult& result) {
  Entry entry{key, result, static_cast<int64_t>(2 * key.size() + sizeof(Entry))};
  for (const auto& [name, tensor] : result.outputs) {
    entry.bytes += static_cast<int64_t>(tensor.byte_size());
  }
  if (entry.bytes > max_bytes_ || found_.contains(key)) return;
  while (bytes_ + entry.bytes > max_bytes_) {
    bytes_ -= entries_.back().bytes;
    found_.erase(entries_.back().key);
    entries_.pop_back();
  }
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  found_[key] = entries_.begin();
}

}  // namespace linserve
