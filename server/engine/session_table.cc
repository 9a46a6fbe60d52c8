#include "engine/session_table.h"

#include <optional>
#include <utility>

#include "batching/limit_met.h"
#include "core/quote.h"
#include "core/retry_delay.h"

namespace linserve {
namespace {

constexpr size_t kMostFormer = 4096;

// What a session needs besides its state: names, places in the table, headers of tensors.
constexpr int64_t kOverhead = 2048;

// How long a session is computing, at least about: until then there may be no room.
constexpr std::chrono::milliseconds kRetryDelay(100);

// What goes on with it needs nothing of a chunk's inputs.
Pending WithoutDelivery(const Pending& chunk) {
  Item item{.inputs = {},
            .options = chunk.item.options,
            .chunk = chunk.item.chunk,
            .then = chunk.item.then};
  return Pending{.item = std::move(item),
                 .key = {},
                 .tokens = 1,
                 .priority = chunk.priority,
                 .enqueued = {},
                 .deadline = chunk.deadline,
                 .origin = chunk.origin,
                 .delivery = Delivery(nullptr, 0),
                 .siblings = nullptr};
}

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
      return "has ended";
  }
  return "is gone";
}

}  // namespace

// Answers the caller of a chunk, and lets the session's next one follow.
class SessionTable::Turn : public ResultSink {
 public:
  // `again`: the chunk, without delivery.
  Turn(std::shared_ptr<SessionTable> table, Key key, Pending again, Delivery delivery)
      : table_(std::move(table)),
        key_(std::move(key)),
        again_(std::move(again)),
        delivery_(std::move(delivery)) {}

  void Deliver(size_t /*index*/, absl::StatusOr<ItemResult> result) override {
    const std::shared_ptr<Continuation> then = again_.item.then;
    if (result.ok() && then != nullptr && !delivery_.Abandoned()) {
      if (auto inputs = then->Next(*result)) return GoOn(*std::move(inputs));
    }
    const SessionChunk& chunk = *again_.item.chunk;
    table_->Ended(key_, result.ok(), then != nullptr || (result.ok() ? chunk.end : chunk.start));
    delivery_.Complete(std::move(result));
  }
  void Report(size_t /*index*/, const ItemProgress& progress) override {
    delivery_.Report(progress);
  }
  bool Abandoned() const override { return delivery_.Abandoned(); }

 private:
  void GoOn(TensorMap inputs) {
    auto chunk = std::make_shared<SessionChunk>();
    chunk->id = key_.second;
    again_.item.inputs = std::move(inputs);
    again_.item.chunk = std::move(chunk);
    again_.delivery = std::move(delivery_);
    table_->Begin(key_, std::move(again_), /*next=*/true);
  }

  const std::shared_ptr<SessionTable> table_;
  const Key key_;
  Pending again_;
  Delivery delivery_;
};

SessionTable::SessionTable(const SessionLimits& limits, std::shared_ptr<const SessionSource> source,
                           const Signature& signature, Compute compute, Clock& clock,
                           ModelMetrics& metrics)
    : limits_(limits),
      source_(std::move(source)),
      signature_(signature),
      compute_(std::move(compute)),
      clock_(clock),
      metrics_(metrics) {}

SessionTable::~SessionTable() { metrics_.SetSessions(0, 0); }

void SessionTable::Take(Pending chunk) {
  const Key key{chunk.origin->caller, chunk.item.chunk->id};
  {
    MutexLock lock(mutex_);
    Session& session = sessions_[key];
    if (session.computing) {
      session.waiting.push_back(std::move(chunk));
      return;
    }
    session.computing = true;
    if (session.state != nullptr) idle_.erase(session.place);
  }
  Begin(key, std::move(chunk), /*next=*/false);
}

// REQUIRES: the session is marked as computing.
void SessionTable::Begin(const Key& key, Pending chunk, bool next) {
  Delivery delivery = std::move(chunk.delivery);
  absl::Status status = Enter(key, chunk.item);
  if (!status.ok()) {
    Ended(key, /*computed=*/false, chunk.item.chunk->start || chunk.item.then != nullptr);
    return delivery.Complete(std::move(status));
  }
  Pending again = WithoutDelivery(chunk);
  chunk.delivery = Delivery(
      std::make_shared<Turn>(shared_from_this(), key, std::move(again), std::move(delivery)), 0);
  compute_(std::move(chunk), next);
}

absl::Status SessionTable::Enter(const Key& key, Item& item) {
  const SessionChunk& chunk = *item.chunk;
  Freed freed;
  std::shared_ptr<SessionState> begun;
  if (chunk.start) {
    auto state = chunk.state.empty() ? source_->New() : source_->Restore(chunk.state);
    if (!state.ok()) return state.status();
    begun = *std::move(state);
  } else if (!chunk.state.empty()) {
    return absl::InvalidArgumentError("a saved session is given without start");
  }
  MutexLock lock(mutex_);
  Session& session = sessions_.at(key);
  if (begun != nullptr) {
    if (absl::Status opened = Open(session, key, std::move(begun), freed); !opened.ok()) {
      return opened;
    }
    metrics_.SessionOpened(!chunk.state.empty());
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

// Begins the session, again if it had been, where there is room for it.
absl::Status SessionTable::Open(Session& session, const Key& key,
                                std::shared_ptr<SessionState> state, Freed& freed) {
  if (session.state != nullptr) Drop(key, session, SessionEnd::kRestarted, freed);
  const int64_t bytes = state->bytes() + kOverhead;
  while (bytes_ + bytes > limits_.max_bytes && !idle_.empty()) {
    DropOldest(SessionEnd::kEvicted, freed);
  }
  if (bytes_ + bytes > limits_.max_bytes) {
    metrics_.Rejected(RejectReason::kSessions);
    return RetryAfter(LimitMet(std::to_string(count_) + " sessions are being computed, with " +
                                   std::to_string(bytes_) + " bytes",
                               bytes, "max_session_bytes", limits_.max_bytes),
                      kRetryDelay);
  }
  session.state = std::move(state);
  session.bytes = bytes;
  session.lost = false;
  ++count_;
  bytes_ += bytes;
  Publish();
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

// `over`: the session ends with this chunk.
void SessionTable::Ended(const Key& key, bool computed, bool over) {
  std::deque<Pending> failed;
  std::optional<Pending> next;
  int64_t position = 0;
  Freed freed;
  {
    MutexLock lock(mutex_);
    Session& session = sessions_.at(key);
    if (session.state != nullptr && (over || session.lost)) {
      Drop(key, session, session.lost ? SessionEnd::kLost : SessionEnd::kEnded, freed);
    }
    if (session.state != nullptr) position = session.state->position();
    if (!computed) failed.swap(session.waiting);
    if (session.waiting.empty()) {
      Rest(key, session);
    } else {
      next = std::move(session.waiting.front());
      session.waiting.pop_front();
    }
  }
  for (Pending& pending : failed) {
    pending.delivery.Complete(
        ResumeFrom(absl::FailedPreconditionError("the chunk of the session before this one was not "
                                                 "computed: send both again, from row " +
                                                 std::to_string(position) + " on"),
                   position));
  }
  if (next) Begin(key, *std::move(next), /*next=*/true);
}

// Nothing of it is being computed any more.
void SessionTable::Rest(const Key& key, Session& session) {
  session.computing = false;
  if (session.state == nullptr) {
    sessions_.erase(key);
    return;
  }
  session.used = clock_.Now();
  session.place = idle_.insert(idle_.end(), key);
}

void SessionTable::Drop(const Key& key, Session& session, SessionEnd reason, Freed& freed) {
  Remember(key, {session.state->position(), reason});
  freed.push_back(std::move(session.state));
  session.state = nullptr;
  --count_;
  bytes_ -= session.bytes;
  metrics_.SessionClosed(reason);
  Publish();
}

void SessionTable::DropOldest(SessionEnd reason, Freed& freed) {
  const Key key = idle_.front();
  idle_.pop_front();
  Drop(key, sessions_.at(key), reason, freed);
  sessions_.erase(key);
}

void SessionTable::Remember(const Key& key, const Former& former) {
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
    DropOldest(SessionEnd::kExpired, freed);
  }
}

void SessionTable::DeviceLost() {
  Freed freed;
  MutexLock lock(mutex_);
  while (!idle_.empty()) DropOldest(SessionEnd::kLost, freed);
  for (auto& [key, session] : sessions_) session.lost = true;
}

void SessionTable::Publish() { metrics_.SetSessions(count_, bytes_); }

}  // namespace linserve
