#include <algorithm>
#include <iterator>
#include <utility>

#include "batching/request_queue.h"

namespace linserve {
namespace {

// Makes room for so many more. No memory may be missing once one is taken out of the queue: it
// would be answered under the lock.
void Reserve(size_t more, std::vector<Pending>& target) {
  if (target.capacity() - target.size() >= more) return;
  target.reserve(std::max(2 * target.capacity(), target.size() + more));
}

}  // namespace

void RequestQueue::Enqueue(std::vector<Pending>& request) {
  if (request.empty()) return;
  const auto siblings = std::make_shared<int64_t>(0);
  for (Pending& pending : request) {
    pending.siblings = siblings;
    const bool joins = Joins(pending);
    if (pending.identity != nullptr) {
      metrics_.CacheLookup(joins ? CacheOutcome::kJoined : CacheOutcome::kMiss);
    }
    if (joins) {
      Join(pending);
    } else {
      Insert(pending);
    }
    // Where memory runs out, those that are in count, and the others are left to the caller.
    if ((*siblings)++ == 0) totals_.requests += 1;
  }
  request.clear();
}

// Returns whether an equal sequence waits, whose entry this one would share.
bool RequestQueue::Joins(const Pending& pending) const {
  return pending.identity != nullptr && shared_.contains(pending.identity);
}

// Where memory runs out in this or in Join(), the queue is as it was, and the sequence is left to
// the caller: it is not to be answered under the lock.
void RequestQueue::Insert(Pending& pending) {
  const TimePoint due = DueTime(pending);
  const auto entry = queue_.emplace_hint(queue_.end(), due, std::move(pending));
  try {
    if (const auto& identity = entry->second.identity) shared_[identity] = entry;
  } catch (...) {
    pending = std::move(entry->second);
    queue_.erase(entry);
    throw;
  }
  totals_ += SizeOf(entry->second);
}

// Lets sequences whose entry waits have its identity object: it needs no comparing any more, and
// none is kept twice.
void RequestQueue::ShareIdentities(std::vector<Pending>& request) const {
  for (Pending& pending : request) {
    if (pending.identity == nullptr) continue;
    const auto found = shared_.find(pending.identity);
    if (found != shared_.end()) pending.identity = found->first;
  }
}

// Lets the sequence share the entry of an equal one.
void RequestQueue::Join(Pending& pending) {
  const auto entry = shared_.find(pending.identity)->second;
  Reserve(1, entry->second.sharers);
  pending.identity = entry->second.identity;
  if (DueTime(pending) < entry->first) Lead(entry, pending);
  shared_.find(pending.identity)->second->second.sharers.push_back(std::move(pending));
}

// Makes the sequence the one among those who share the entry whose priority and turn count, and
// whose caller spends the time. `pending` is then the one before it.
void RequestQueue::Lead(Queue::iterator entry, Pending& pending) {
  const TimePoint now = clock_.Now();
  const auto time = TimeFor(entry->second.tokens);
  turns_.GiveBack(entry->second.origin->caller, time);
  turns_.Reserve(pending.origin->caller, turns_.Next(pending.origin->caller, now) + time, now);
  auto node = queue_.extract(entry);
  Pending& lead = node.mapped();
  pending.sharers = std::exchange(lead.sharers, {});
  std::swap(lead, pending);
  node.key() = DueTime(lead);
  shared_[pending.identity] = queue_.insert(std::move(node));
}

// Takes out of an entry those who need not be computed any more, and the entry if nobody is left.
void RequestQueue::DropHopeless(Queue::iterator entry, std::vector<Pending>& departed) {
  const bool leads = !IsHopeless(entry->second);
  if (leads && entry->second.sharers.empty()) return;
  std::vector<Pending> staying;
  staying.reserve(entry->second.sharers.size());
  Reserve(1 + entry->second.sharers.size(), departed);
  for (Pending& sharer : entry->second.sharers) {
    const bool hopeless = IsHopeless(sharer);
    if (hopeless) Leave(sharer);
    (hopeless ? departed : staying).push_back(std::move(sharer));
  }
  if (!leads && staying.empty()) {
    entry->second.sharers.clear();
    return GiveUp(entry, departed);
  }
  if (!leads) {
    const auto next = std::min_element(
        staying.begin(), staying.end(),
        [](const Pending& a, const Pending& b) { return DueTime(a) < DueTime(b); });
    std::swap(*next, staying.back());
    Lead(entry, staying.back());
    Pending left = std::move(staying.back());
    staying.pop_back();
    Leave(left);
    entry = shared_.find(left.identity)->second;
    departed.push_back(std::move(left));
  }
  entry->second.sharers = std::move(staying);
}

// Counts that a sequence of its request waits no longer.
void RequestQueue::Leave(Pending& pending) {
  if (--*pending.siblings == 0) totals_.requests -= 1;
}

// Takes out an entry, with all who share it.
Pending RequestQueue::Unlink(Queue::iterator entry) {
  Pending lead = std::move(entry->second);
  if (lead.identity != nullptr) shared_.erase(lead.identity);
  queue_.erase(entry);
  totals_ -= SizeOf(lead);
  Leave(lead);
  for (Pending& sharer : lead.sharers) Leave(sharer);
  return lead;
}

// Takes out an entry that is not to be computed.
void RequestQueue::GiveUp(Queue::iterator entry, std::vector<Pending>& target) {
  turns_.GiveBack(entry->second.origin->caller, TimeFor(SizeOf(entry->second).tokens));
  Scatter(entry, target);
}

// Takes out an entry, and adds all of it, each by itself: those who share it, and those of one
// unit.
void RequestQueue::Scatter(Queue::iterator entry, std::vector<Pending>& target) {
  Reserve(1 + entry->second.rest.size() + entry->second.sharers.size(), target);
  Pending lead = Unlink(entry);
  std::vector<Pending> sharers = std::exchange(lead.sharers, {});
  std::vector<Pending> rest = std::exchange(lead.rest, {});
  target.push_back(std::move(lead));
  std::move(rest.begin(), rest.end(), std::back_inserter(target));
  std::move(sharers.begin(), sharers.end(), std::back_inserter(target));
}

}  // namespace linserve
