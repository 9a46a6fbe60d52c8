#include <algorithm>
#include <cstdio>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "batching/request_queue.h"
#include "core/status/draining.h"
#include "core/status/limit_met.h"

namespace linserve {
namespace {

absl::Status Full(const char* limit, int64_t value, int64_t waiting, int64_t added) {
  return LimitMet("the queue is full: " + std::to_string(waiting) + " waiting", added, limit,
                  value);
}

std::string Milliseconds(std::chrono::nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f ms", static_cast<double>(time.count()) / 1e6);
  return text;
}

}  // namespace

// Returns what an entry counts, without the request that it is of.
RequestQueue::Totals RequestQueue::SizeOf(const Pending& pending) {
  Totals size{0, 1 + std::ssize(pending.rest), pending.tokens, pending.bytes};
  for (const Pending& other : pending.rest) {
    size.tokens += other.tokens;
    size.bytes += other.bytes;
  }
  return size;
}

// Returns what the request would add to what waits.
RequestQueue::Totals RequestQueue::TotalsOf(const std::vector<Pending>& request) const {
  Totals totals;
  if (!request.empty()) totals.requests = 1;
  for (const Pending& pending : request) {
    if (Joins(pending)) continue;
    totals += SizeOf(pending);
  }
  return totals;
}

bool RequestQueue::Fits(const Totals& added, const Totals& waiting) const {
  return waiting.sequences + added.sequences <= limits_.max_sequences &&
         waiting.tokens + added.tokens <= limits_.max_tokens &&
         waiting.bytes + added.bytes <= limits_.max_bytes;
}

// Returns OK where Fits() says so, and otherwise the limit that is met.
RequestQueue::Admission RequestQueue::Admit(const Totals& added) const {
  const Totals& waiting = totals_;
  if (closed_) {
    return {DrainingError(), RejectReason::kDraining};
  }
  if (waiting.sequences + added.sequences > limits_.max_sequences) {
    return {Full("max_queue_sequences", limits_.max_sequences, waiting.sequences, added.sequences),
            RejectReason::kQueue};
  }
  if (waiting.tokens + added.tokens > limits_.max_tokens) {
    return {Full("max_queue_tokens", limits_.max_tokens, waiting.tokens, added.tokens),
            RejectReason::kQueue};
  }
  if (waiting.bytes + added.bytes > limits_.max_bytes) {
    return {Full("max_queue_bytes", limits_.max_bytes, waiting.bytes, added.bytes),
            RejectReason::kBytes};
  }
  return {absl::OkStatus(), {}};
}

RequestQueue::Admission RequestQueue::MakeRoom(const std::vector<Pending>& request,
                                               const Totals& added,
                                               std::vector<Pending>& displaced) {
  Admission admission = Admit(added);
  if (request.empty() || absl::IsUnavailable(admission.status)) return admission;
  const Pending& last = request.back();
  const auto slack = last.deadline - clock_.Now();
  // The request waits for the batch under way, too, and then for its own.
  const auto own = 2 * BatchTime(last);
  if (const auto wait = WaitBefore(last); wait.count() > 0 && wait + own > slack) {
    return {absl::ResourceExhaustedError(
                "the deadline is in " + Milliseconds(slack) + ", but " + Milliseconds(wait) +
                " or more of work wait before this, and its own takes up to " + Milliseconds(own) +
                "; try again later, or another server"),
            RejectReason::kDeadline};
  }
  if (!admission.status.ok() && Displace(request, added, displaced)) {
    return {absl::OkStatus(), {}};
  }
  return admission;
}

// Displaces sequences that are due last, to make room for what is due before them: all that is
// needed, or none. Those which the request shares stay, as it would have to bring its own; and so
// do those that go on, since their callers have had results already.
bool RequestQueue::Displace(const std::vector<Pending>& request, const Totals& added,
                            std::vector<Pending>& displaced) {
  const TimePoint due = DueTime(request.back());
  std::unordered_set<const Pending*> shared;
  for (const Pending& pending : request) {
    if (Joins(pending)) shared.insert(&shared_.find(pending.identity)->second->second);
  }
  std::vector<Queue::iterator> victims;
  Totals left = totals_;
  auto entry = queue_.end();
  while (!Fits(added, left)) {
    if (entry == queue_.begin()) return false;
    --entry;
    if (entry->first <= due) return false;
    if (entry->second.next || shared.contains(&entry->second)) continue;
    left -= SizeOf(entry->second);
    victims.push_back(entry);
  }
  for (const Queue::iterator victim : victims) {
    GiveUp(victim, displaced);
  }
  return true;
}

// Sets the turns as if the request were admitted.
void RequestQueue::SetTurns(std::vector<Pending>& request) const {
  const TimePoint now = clock_.Now();
  if (request.empty()) return;
  TimePoint turn = turns_.Next(request[0].origin->caller, now);
  for (Pending& pending : request) {
    pending.enqueued = now;
    pending.turn = turn;
    for (Pending& other : pending.rest) {
      other.enqueued = now;
      other.turn = turn;
    }
    if (!Joins(pending)) turn += TimeFor(SizeOf(pending).tokens);
  }
}

void RequestQueue::ReserveTurns(const std::vector<Pending>& request) {
  if (request.empty()) return;
  const Pending& last = request.back();
  const auto own = Joins(last) ? std::chrono::nanoseconds(0) : TimeFor(SizeOf(last).tokens);
  turns_.Reserve(last.origin->caller, last.turn + own, clock_.Now());
}

// Sets the turn of what goes on to that of the one before it, and the time later that its
// computation took: a step of few tokens takes far longer than they do in a full batch.
void RequestQueue::KeepTurn(Pending& next) {
  const TimePoint now = clock_.Now();
  next.enqueued = now;
  next.turn = std::max(next.turn, turns_.Current(now));
  if (const auto& before = next.taken) {
    next.turn = std::max(next.turn, before->turn + (now - before->at) / workers_.count);
  }
  const std::string& caller = next.origin->caller;
  turns_.Reserve(caller, turns_.Next(caller, now) + TimeFor(next.tokens), now);
}

// Returns how long all workers together take.
std::chrono::nanoseconds RequestQueue::TimeFor(int64_t tokens) const {
  return workers_.time_for ? workers_.time_for(tokens) / workers_.count
                           : std::chrono::nanoseconds(0);
}

// Returns how long the sequence waits at least, if it has a deadline. Counting stops where it is
// clear that the sequence is late. It goes on from both ends of the queue, since nearly all are due
// among the first or the last.
std::chrono::nanoseconds RequestQueue::WaitBefore(const Pending& pending) const {
  if (pending.deadline == TimePoint::max()) return {};
  const auto slack = pending.deadline - clock_.Now();
  if (TimeFor(totals_.tokens) + 2 * BatchTime(pending) <= slack) return {};
  TimePoint due = DueTime(pending);
  if (Joins(pending)) due = std::min(due, shared_.find(pending.identity)->second->first);
  int64_t before = 0;                            // of the first ones, which are due before it
  int64_t left = totals_.tokens - held_tokens_;  // of all but the last ones, which are not
  auto front = queue_.begin();
  auto back = queue_.end();
  while (front != back && front->first <= due && TimeFor(before) <= slack) {
    if ((--back)->first <= due) return TimeFor(left);
    left -= SizeOf(back->second).tokens;
    before += SizeOf(front->second).tokens;
    ++front;
  }
  return TimeFor(before);
}

}  // namespace linserve
