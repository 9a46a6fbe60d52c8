#include "engine/result_cache.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/tensor/tensor_bytes.h"
#include "core/threads/guarded.h"
#include "engine/batch_delivery.h"

namespace linserve {
namespace {

void Append(const void* bytes, size_t size, std::string& key) {
  key.append(reinterpret_cast<const char*>(&size), sizeof(size));
  key.append(static_cast<const char*>(bytes), size);
}

// Returns everything that a result depends on.
std::string IdentityOf(const Item& item) {
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
    key.resize(size + tensor.byte_size());  // shape and type tell this size
    tensor.CopyTo(reinterpret_cast<std::byte*>(key.data() + size));
  }
  return key;
}

// Copies a result into memory of its own: a result may be a view of a whole batch's, which it would
// keep.
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

// Represents one computation, and knows all who wait for it.
class ResultCache::Flight : public ResultSink {
 public:
  Flight(std::shared_ptr<ResultCache> cache, std::shared_ptr<const Identity> identity)
      : cache_(std::move(cache)), identity_(std::move(identity)) {}

  // Lets `pending`, and those who share it, wait for the result, too. Returns false if the
  // computation has ended or was given up.
  bool Join(Pending& pending) {
    MutexLock lock(mutex_);
    if (over_) return false;
    for (Pending& sharer : pending.sharers) Add(sharer);
    pending.sharers.clear();
    Add(pending);
    return true;
  }

  void Deliver(size_t /*index*/, absl::StatusOr<ItemResult> result) override {
    // Whoever waits gets the result even where memory ran out for keeping it.
    RunGuarded("keeping a result", [&] { cache_->Landed(*this, result); });
    std::vector<Waiter> waiters;
    {
      MutexLock lock(mutex_);
      over_ = true;
      waiters.swap(waiters_);
    }
    const TimePoint now = cache_->clock_.Now();
    for (const Waiter& waiter : waiters) {
      // The computation was given up since nobody waited any more, each for a reason of their own.
      const bool late = absl::IsCancelled(result.status()) && waiter.deadline <= now;
      RunGuarded("an answer", [&] { waiter.delivery->Complete(late ? DeadlinePassed() : result); });
    }
  }

  void Report(size_t /*index*/, const ItemProgress& progress) override {
    std::vector<std::shared_ptr<Delivery>> asking;  // told without the lock: they may call back
    {
      MutexLock lock(mutex_);
      for (const Waiter& waiter : waiters_) {
        if (waiter.wants_progress) asking.push_back(waiter.delivery);
      }
    }
    for (const auto& delivery : asking) delivery->Report(progress);
  }

  // Once it has said so, the computation is given up, and nobody joins it any more: whoever comes
  // then has one begun for them.
  bool Abandoned() const override {
    const TimePoint now = cache_->clock_.Now();
    MutexLock lock(mutex_);
    over_ = over_ || std::all_of(waiters_.begin(), waiters_.end(), [&](const Waiter& waiter) {
              return waiter.deadline <= now || waiter.delivery->Abandoned();
            });
    return over_;
  }

  const std::shared_ptr<const Identity>& identity() const { return identity_; }

 private:
  struct Waiter {
    std::shared_ptr<Delivery> delivery;
    TimePoint deadline;
    bool wants_progress;
  };

  void Add(Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    waiters_.push_back({std::make_shared<Delivery>(std::move(pending.delivery)), pending.deadline,
                        pending.item.report_progress});
  }

  const std::shared_ptr<ResultCache> cache_;
  const std::shared_ptr<const Identity> identity_;
  mutable Mutex mutex_;
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  mutable bool over_ ABSL_GUARDED_BY(mutex_) = false;  // it has ended, or was given up
};

ResultCache::~ResultCache() { metrics_->AddCacheBytes(-bytes_); }

std::optional<ItemResult> ResultCache::LookUp(std::optional<Pending>& pending) {
  // What could not be kept has no identity, which would be a copy of it.
  if (BytesOf(pending->item.inputs) > max_bytes_) {
    metrics_->CacheLookup(CacheOutcome::kMiss);
    return std::nullopt;
  }
  pending->identity = std::make_shared<const Identity>(IdentityOf(pending->item));
  MutexLock lock(mutex_);
  auto result = Find(*pending);
  if (result) {
    metrics_->CacheLookup(CacheOutcome::kHit);
  } else if (JoinFlight(*pending)) {
    metrics_->CacheLookup(CacheOutcome::kJoined);
    pending.reset();
  }
  return result;
}

void ResultCache::BeginComputing(std::vector<Pending>& sequences) {
  std::vector<Pending> flying;
  for (Pending& pending : sequences) {
    if (pending.identity == nullptr) {
      flying.push_back(std::move(pending));
      continue;
    }
    std::optional<ItemResult> result;
    {
      MutexLock lock(mutex_);
      result = Find(pending);
      if (!result) {
        if (JoinFlight(pending)) continue;
        Begin(pending);
        flying.push_back(std::move(pending));
        continue;
      }
    }
    for (Pending& sharer : pending.sharers) sharer.delivery.Complete(*result);
    pending.delivery.Complete(*std::move(result));
  }
  sequences = std::move(flying);
}

std::optional<ItemResult> ResultCache::Find(const Pending& pending) {
  const auto found = found_.find(pending.identity);
  if (found == found_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  ItemResult result = found->second->result;
  result.timing = {};
  return result;
}

bool ResultCache::JoinFlight(Pending& pending) {
  const auto found = flights_.find(pending.identity);
  if (found == flights_.end()) return false;
  const auto flight = found->second.lock();
  return flight != nullptr && flight->Join(pending);
}

// Has the sequence computed for all who wait for it, and who join them meanwhile.
void ResultCache::Begin(Pending& pending) {
  const auto flight = std::make_shared<Flight>(shared_from_this(), pending.identity);
  flight->Join(pending);
  flights_[pending.identity] = flight;
  pending.delivery = Delivery(flight, 0);
  pending.deadline = TimePoint::max();  // each caller has a deadline of its own
  pending.item.report_progress = true;  // for callers who ask for it, now or later
}

// Notes that a computation has ended, once its result is kept: between the two nobody may come who
// finds neither.
void ResultCache::Landed(const Flight& flight, const absl::StatusOr<ItemResult>& result) {
  const auto& identity = flight.identity();
  const absl::Cleanup forget = [&] {
    MutexLock lock(mutex_);
    const auto slot = flights_.find(identity);
    // One that was given up may have been followed by another.
    if (slot != flights_.end() && slot->second.lock().get() == &flight) flights_.erase(slot);
  };
  if (!result.ok() || BytesToKeep(*identity, *result) > max_bytes_) return;
  const ItemResult copy = CopyOf(*result);
  MutexLock lock(mutex_);
  const int64_t before = bytes_;
  Insert(identity, copy);
  metrics_->AddCacheBytes(bytes_ - before);
}

// Returns how much memory it takes to keep a result.
int64_t ResultCache::BytesToKeep(const Identity& identity, const ItemResult& result) {
  return static_cast<int64_t>(identity.size() + sizeof(Entry)) + BytesOf(result.outputs);
}

void ResultCache::Insert(const std::shared_ptr<const Identity>& identity,
                         const ItemResult& result) {
  // Where memory runs out in these two lines, nothing has changed.
  Entries added(1, Entry{identity, result, BytesToKeep(*identity, result)});
  if (!found_.try_emplace(identity, added.begin()).second) return;
  bytes_ += added.front().bytes;
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.back().bytes;
    found_.erase(entries_.back().identity);
    entries_.pop_back();
  }
  entries_.splice(entries_.begin(), added);
}

}  // namespace linserve
