#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/status/retry_delay.h"
#include "core/threads/guarded.h"
#include "engine/sessions/session_table.h"

namespace linserve {
namespace {

// Copies a chunk without its delivery. What goes on with it needs nothing of a chunk's inputs.
Pending WithoutDelivery(const Pending& chunk) {
  Item item{.inputs = {},
            .options = chunk.item.options,
            .chunk = chunk.item.chunk,
            .then = chunk.item.then};
  return Pending{.item = std::move(item),
                 .tokens = 1,
                 .priority = chunk.priority,
                 .deadline = chunk.deadline,
                 .origin = chunk.origin,
                 .delivery = Delivery(nullptr, 0),
                 .taken = chunk.taken};
}

// Returns the answer to the chunks behind one that was refused.
absl::Status Behind(const absl::Status& fault) {
  if (absl::IsResourceExhausted(fault) || absl::IsUnavailable(fault)) return fault;
  return absl::FailedPreconditionError(
      "the chunk of the session before this one was refused: send both again");
}

absl::Status LineIsFull() {
  constexpr std::chrono::milliseconds kComeBack(100);
  return RetryAfter(absl::ResourceExhaustedError(
                        std::to_string(kMostWaitingChunks) +
                        " chunks of the session wait, which is the most; wait for answers before "
                        "sending more"),
                    kComeBack);
}

}  // namespace

// Answers the caller of a chunk, and lets the session's next one follow.
class SessionTable::ChunkSink : public ResultSink {
 public:
  // `state` is where the chunk's session stands before it, and `again` is the chunk, without
  // delivery.
  ChunkSink(std::shared_ptr<SessionTable> table, Key key, std::shared_ptr<const SessionState> state,
            Pending again, Delivery delivery)
      : table_(std::move(table)),
        key_(std::move(key)),
        state_(std::move(state)),
        position_(state_->position()),
        again_(std::move(again)),
        delivery_(std::move(delivery)) {}

  // Where memory ran out before the session could go on, those behind the chunk must not wait for
  // ever.
  ~ChunkSink() override {
    if (ended_) return;
    RunGuarded("a session", [this] {
      if (auto next = End(/*computed=*/false)) table_->Begin(key_, *std::move(next), false);
    });
  }

  void Deliver(size_t /*index*/, absl::StatusOr<ItemResult> result) override {
    const std::shared_ptr<Continuation> then = again_.item.then;
    if (result.ok() && then != nullptr) {
      if (delivery_.Abandoned()) {
        result = absl::CancelledError("the caller left before the last token");
      } else {
        std::optional<TensorMap> inputs;
        const absl::Status status = Guarded("the session", [&] { inputs = then->Next(*result); });
        if (inputs) return GoOn(*std::move(inputs));
        if (!status.ok()) result = status;
      }
    }
    // A chunk whose rows were read counts as computed, even if its result could not be had.
    const int64_t position = state_->position();
    const bool computed = result.ok() || (position != position_ && !state_->lost());
    if (computed && !result.ok() && !Over(computed)) {
      result = ReadWithoutResult(result.status(), position);
    }
    std::optional<Pending> next = End(computed);
    delivery_.Complete(std::move(result));
    // Only a worker delivers what was computed, and then goes on to take more.
    if (!next) return;
    next->taken = again_.taken;
    table_->Begin(key_, *std::move(next), /*next=*/computed);
  }
  void Report(size_t /*index*/, const ItemProgress& progress) override {
    delivery_.Report(progress);
  }
  bool Abandoned() const override { return delivery_.Abandoned(); }

  // Gives back the duty to answer, as the chunk is not computed.
  Delivery Release() {
    ended_ = true;
    return std::move(delivery_);
  }

 private:
  void GoOn(TensorMap inputs) {
    auto chunk = std::make_shared<SessionChunk>();
    chunk->id = key_.second;
    again_.item.inputs = std::move(inputs);
    again_.item.chunk = std::move(chunk);
    again_.delivery = std::move(delivery_);
    ended_ = true;
    table_->Begin(key_, std::move(again_), /*next=*/true);
  }

  // Returns whether the session ends with the chunk.
  bool Over(bool computed) const {
    return again_.item.then != nullptr || (computed && again_.item.chunk->end);
  }

  std::optional<Pending> End(bool computed) {
    auto next = table_->Ended(
        key_, {.computed = computed, .start = again_.item.chunk->start, .over = Over(computed)});
    ended_ = true;
    return next;
  }

  const std::shared_ptr<SessionTable> table_;
  const Key key_;
  const std::shared_ptr<const SessionState> state_;
  const int64_t position_;
  Pending again_;
  Delivery delivery_;
  bool ended_ = false;
};

void SessionTable::Take(std::vector<ArrivedChunk> chunks) {
  std::map<Key, absl::Status> refused;  // why what follows in this request is refused
  // The first chunk of a session is begun when those behind it are in line: if it cannot be, they
  // are not read either. Whatever is thrown meanwhile, a session that was claimed goes on.
  std::vector<std::pair<Key, Pending>> claimed;
  claimed.reserve(chunks.size());
  const absl::Cleanup begin = [&] {
    for (auto& one : claimed) {
      RunGuarded("a session", [&] { Begin(one.first, std::move(one.second), /*next=*/false); });
    }
  };
  for (ArrivedChunk& arrived : chunks) {
    Pending& chunk = arrived.pending;
    Key key{chunk.origin->caller, chunk.item.chunk->id};
    absl::Status& before = refused[key];
    if (chunk.item.chunk->start) before = absl::OkStatus();
    bool begins = false;
    absl::Status status = arrived.fault;
    if (status.ok()) status = before;
    if (status.ok()) status = GetInLine(key, chunk, begins);
    if (begins && chunk.room == nullptr && chunks.size() > 1) status = HoldFirst(key, chunk);
    if (!status.ok()) {
      before = begins ? Behind(status) : Refused(key, status);
      chunk.room.reset();
      chunk.delivery.Complete(std::move(status));
    } else if (begins) {
      claimed.emplace_back(std::move(key), std::move(chunk));
    }
  }
}

// Lets the chunk wait behind those of its session. `begins` is set if there are none.
absl::Status SessionTable::GetInLine(const Key& key, Pending& chunk, bool& begins) {
  {
    MutexLock lock(mutex_);
    absl::Status status = MayFollow(key, *chunk.item.chunk, begins);
    if (begins || !status.ok()) return status;
  }
  // This is done without the lock, since whoever gives way to the chunk may be one of a session,
  // too. Whom the queue refuses, and counts so, is not let in, even if its session rests by now.
  absl::Status status = hold_(chunk);
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  status = MayFollow(key, *chunk.item.chunk, begins);
  if (begins || !status.ok()) return status;
  Session& session = sessions_.at(key);
  if (session.waiting.size() >= kMostWaitingChunks) {
    metrics_->Rejected(RejectReason::kQueue);
    return LineIsFull();
  }
  session.waiting.push_back(std::move(chunk));
  return absl::OkStatus();
}

// Takes room for a claimed session's first chunk, lest those behind it take it.
absl::Status SessionTable::HoldFirst(const Key& key, Pending& chunk) {
  absl::Status status = Guarded("the session", [&] { return hold_(chunk); });
  if (status.ok()) return status;
  auto next = Ended(
      key,
      {.computed = false, .start = chunk.item.chunk->start, .over = chunk.item.then != nullptr});
  if (next) Begin(key, *std::move(next), /*next=*/false);
  return status;
}

// Says whether a chunk may come behind those that its session has. `begins` is set if there are
// none, and the session is then marked as computing.
absl::Status SessionTable::MayFollow(const Key& key, const SessionChunk& chunk, bool& begins) {
  if (!flushed_.ok()) return flushed_;
  Session& session = sessions_[key];
  begins = Claim(session);
  if (begins) return absl::OkStatus();
  if (chunk.start) session.tail = absl::OkStatus();
  return session.tail;
}

// Marks a session as computing; returns false if it is.
bool SessionTable::Claim(Session& session) {
  if (session.computing) return false;
  session.computing = true;
  if (session.state != nullptr) idle_.erase(session.place);
  return true;
}

// Notes that a chunk does not get in line. Returns the answer to those that follow it.
absl::Status SessionTable::Refused(const Key& key, const absl::Status& fault) {
  absl::Status behind = Behind(fault);
  MutexLock lock(mutex_);
  const auto session = sessions_.find(key);
  if (session != sessions_.end() && session->second.computing) session->second.tail = behind;
  return behind;
}

// Begins to compute a chunk, or the first one behind it that can be. REQUIRES: the session is
// marked as computing.
void SessionTable::Begin(const Key& key, Pending chunk, bool next) {
  std::optional<Pending> one = std::move(chunk);
  while (one) {
    one->room.reset();
    Delivery delivery = std::move(one->delivery);
    std::shared_ptr<ChunkSink> sink;
    absl::Status status;
    if (delivery.Abandoned()) {
      metrics_->Abandoned(AbandonStage::kQueue);
      status = absl::CancelledError("the caller left while the chunk waited");
    } else {
      // Whatever is thrown for one chunk, those behind it must not wait for ever.
      status = Guarded("the session", [&] {
        absl::Status entered = Enter(key, one->item);
        if (!entered.ok()) return entered;
        if (one->taken == nullptr) one->taken = std::make_shared<TurnTaken>();
        sink = std::make_shared<ChunkSink>(shared_from_this(), key, one->item.session,
                                           WithoutDelivery(*one), std::move(delivery));
        one->delivery = Delivery(sink, 0);
        return compute_(*one, next);
      });
    }
    // A chunk that was queued is answered from there, whatever failed since.
    if (status.ok() || (sink != nullptr && !one->delivery.owes())) return;
    // Through its sink the refusal of each chunk would stand on the stack below that of the next.
    one->delivery.Release();
    if (sink != nullptr) delivery = sink->Release();
    one = Ended(
        key,
        {.computed = false, .start = one->item.chunk->start, .over = one->item.then != nullptr});
    delivery.Complete(std::move(status));
  }
}

// Goes on after a chunk: answers those behind one that failed, and returns the next to be begun.
std::optional<Pending> SessionTable::Ended(const Key& key, const Ending& ending) {
  std::deque<Pending> failed;
  std::optional<Pending> next;
  int64_t position = 0;
  Freed freed;
  {
    MutexLock lock(mutex_);
    Session& session = sessions_.at(key);
    Settle(key, session, ending, freed);
    if (session.state != nullptr && !ending.start) position = session.state->position();
    if (!ending.computed) failed = TakeFailed(session.waiting);
    if (session.waiting.empty()) {
      Rest(key, session);
    } else {
      next = std::move(session.waiting.front());
      session.waiting.pop_front();
    }
  }
  for (Pending& pending : failed) {
    pending.room.reset();
    pending.delivery.Complete(
        ResumeFrom(absl::FailedPreconditionError("the chunk of the session before this one was not "
                                                 "computed: send both again, from row " +
                                                 std::to_string(position) + " on"),
                   position));
  }
  return next;
}

// Takes out the chunks that follow one that failed, up to one that starts the session.
std::deque<Pending> SessionTable::TakeFailed(std::deque<Pending>& waiting) {
  const auto start = std::find_if(waiting.begin(), waiting.end(),
                                  [](const Pending& pending) { return pending.item.chunk->start; });
  std::deque<Pending> failed(std::make_move_iterator(waiting.begin()),
                             std::make_move_iterator(start));
  waiting.erase(waiting.begin(), start);
  return failed;
}

size_t SessionTable::Flush(const absl::Status& status) {
  std::deque<Pending> flushed;
  {
    MutexLock lock(mutex_);
    flushed_ = status;
    for (auto& [key, session] : sessions_) {
      std::move(session.waiting.begin(), session.waiting.end(), std::back_inserter(flushed));
      session.waiting.clear();
    }
  }
  size_t waited = 0;
  for (Pending& pending : flushed) {
    if (!pending.delivery.Abandoned()) ++waited;
    pending.room.reset();
    pending.delivery.Complete(status);
  }
  return waited;
}

}  // namespace linserve
