#include "engine/sessions/session_table.h"

#include <algorithm>
#include <utility>

#include "core/status/retry_delay.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

constexpr size_t kMostFormer = 4096;

// Bytes that a session needs besides its state: names, places in the table, headers of tensors.
constexpr int64_t kOverhead = 2048;

int64_t BytesOf(const SessionState& state) { return state.bytes() + kOverhead; }

std::string WhyGone(SessionEnd reason) {
  switch (reason) {
    case SessionEnd::kEvicted:
      return "was evicted for others (max_session_bytes)";
    case SessionEnd::kExpired:
      return "was not used for too long (session_idle_seconds)";
    case SessionEnd::kLost:
      return "was lost with the device that it was on";
    case SessionEnd::kEnded:
    case SessionEnd::kRestarted:
    case SessionEnd::kFailed:
    case SessionEnd::kUnloaded:
      return "has ended";
  }
  return "is gone";
}

}  // namespace

SessionTable::SessionTable(const SessionLimits& limits, std::shared_ptr<const SessionSource> source,
                           const Signature& signature, Compute compute, Hold hold, Clock& clock,
                           ModelMetrics& metrics)
    : limits_(limits),
      budget_(limits.budget != nullptr
                  ? limits.budget
                  : std::make_shared<SessionBudget>(limits.max_bytes, limits.max_bytes)),
      source_(std::move(source)),
      signature_(signature),
      compute_(std::move(compute)),
      hold_(std::move(hold)),
      clock_(clock),
      metrics_(metrics.shared_from_this()) {}

SessionTable::~SessionTable() {
  for (const auto& [key, session] : sessions_) {
    if (session.state == nullptr) continue;
    metrics_->SessionClosed(SessionEnd::kUnloaded);
    budget_->Give(key.first, BytesOf(*session.state));
  }
  metrics_->AddSessions(-count_, -bytes_);
}

absl::Status SessionTable::Enter(const Key& key, Item& item) {
  const SessionChunk& chunk = *item.chunk;
  Freed freed;
  std::shared_ptr<SessionState> begun;
  if (chunk.start) {
    auto state = chunk.state.empty() ? source_->New() : source_->Restore(chunk.state);
    if (!state.ok()) return state.status();
    begun = *std::move(state);
    budget_->MakeRoom(key.first, BytesOf(*begun));
  } else if (!chunk.state.empty()) {
    return absl::InvalidArgumentError("a saved session is given without start");
  }
  MutexLock lock(mutex_);
  Session& session = sessions_.at(key);
  if (begun != nullptr) {
    if (absl::Status opened = Open(session, key, std::move(begun), freed); !opened.ok()) {
      return opened;
    }
    metrics_->SessionOpened(!chunk.state.empty());
  }
  if (session.state == nullptr) return Unknown(key);
  const int64_t position = session.state->position();
  if (chunk.position && *chunk.position != position) {
    return ResumeFrom(absl::FailedPreconditionError(
                          "session " + Quoted(chunk.id) + " has read " + std::to_string(position) +
                          " rows, and this chunk is said "
                          "to follow " +
                          std::to_string(*chunk.position) + ": send what comes from row " +
                          std::to_string(position) + " on, or start the session again"),
                      position);
  }
  item.session = session.state;
  return ValidateChunk(signature_, item);
}

// Begins the session where there is room for it. One that was begun before is kept until the first
// chunk is computed, lest a fault of that takes it from its caller; unless both can never be kept.
absl::Status SessionTable::Open(Session& session, const Key& key,
                                std::shared_ptr<SessionState> state, Freed& freed) {
  const int64_t bytes = BytesOf(*state);
  if (session.state != nullptr) {
    const bool both =
        BytesOf(*session.state) + bytes <= std::min(limits_.max_bytes, budget_->MostOfACaller());
    if (session.state->lost()) {
      Drop(key, session, SessionEnd::kLost, freed);
    } else if (!both) {
      Drop(key, session, SessionEnd::kRestarted, freed);
    }
  }
  if (absl::Status room = TakeRoom(key.first, bytes, freed); !room.ok()) return room;
  session.before = std::move(session.state);
  session.state = std::move(state);
  session.fresh = true;
  ++count_;
  ++counts_[key.first];
  bytes_ += bytes;
  metrics_->AddSessions(1, bytes);
  return absl::OkStatus();
}

absl::Status SessionTable::Unknown(const Key& key) const {
  const std::string name = "session " + Quoted(key.second);
  const auto former = former_.find(key);
  const std::string what = former == former_.end()
                               ? " is not known to this server and model version"
                               : " " + WhyGone(former->second.reason) + ", after " +
                                     std::to_string(former->second.position) + " rows";
  return ResumeFrom(
      absl::FailedPreconditionError(
          name + what + ": start it again with what comes from row 0 on, or from a saved session"),
      0);
}

// Decides what is left of a session after a chunk: one that has started it again counts only if it
// was computed.
void SessionTable::Settle(const Key& key, Session& session, const Ending& ending, Freed& freed) {
  if (session.fresh && !ending.computed) {
    Close(key, std::exchange(session.state, std::move(session.before)), SessionEnd::kFailed, freed);
  } else if (session.before != nullptr) {
    Close(key, std::move(session.before), SessionEnd::kRestarted, freed);
  }
  session.fresh = false;
  if (session.state == nullptr) return;
  if (const bool lost = session.state->lost(); lost || ending.over) {
    Drop(key, session, lost ? SessionEnd::kLost : SessionEnd::kEnded, freed);
  }
}

// Marks a session as resting: nothing of it is being computed any more.
void SessionTable::Rest(const Key& key, Session& session) {
  session.computing = false;
  session.tail = absl::OkStatus();
  if (session.state == nullptr) {
    sessions_.erase(key);
    return;
  }
  session.used = clock_.Now();
  session.place = idle_.insert(idle_.end(), key);
}

void SessionTable::Close(const Key& key, std::shared_ptr<SessionState> state, SessionEnd reason,
                         Freed& freed) {
  const int64_t bytes = BytesOf(*state);
  --count_;
  if (const auto own = counts_.find(key.first); --own->second == 0) counts_.erase(own);
  bytes_ -= bytes;
  budget_->Give(key.first, bytes);
  freed.push_back(std::move(state));
  metrics_->SessionClosed(reason);
  metrics_->AddSessions(-1, -bytes);
}

void SessionTable::Drop(const Key& key, Session& session, SessionEnd reason, Freed& freed) {
  Remember(key, {session.state->position(), reason});
  Close(key, std::move(session.state), reason, freed);
  session.state = nullptr;
}

void SessionTable::DropIdle(std::list<Key>::iterator place, SessionEnd reason, Freed& freed) {
  const Key key = std::move(*place);
  idle_.erase(place);
  Drop(key, sessions_.at(key), reason, freed);
  sessions_.erase(key);
}

void SessionTable::Remember(const Key& key, const Former& former) {
  if (key.second.starts_with(kOwnSessionIds)) return;  // nobody asks for it
  const auto [entry, added] = former_.insert_or_assign(key, former);
  if (!added) return;
  former_keys_.push_back(key);
  if (former_keys_.size() <= kMostFormer) return;
  former_.erase(former_keys_.front());
  former_keys_.pop_front();
}

void SessionTable::Expire() {
  Freed freed;
  MutexLock lock(mutex_);
  const TimePoint oldest = clock_.Now() - limits_.max_idle;
  while (!idle_.empty() && sessions_.at(idle_.front()).used <= oldest) {
    DropIdle(idle_.begin(), SessionEnd::kExpired, freed);
  }
}

void SessionTable::DeviceLost() {
  Freed freed;
  MutexLock lock(mutex_);
  for (auto next = idle_.begin(); next != idle_.end();) {
    const auto place = next++;
    if (sessions_.at(*place).state->lost()) DropIdle(place, SessionEnd::kLost, freed);
  }
}

}  // namespace linserve
