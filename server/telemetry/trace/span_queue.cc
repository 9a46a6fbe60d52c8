#include "telemetry/trace/span_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/threads/guarded.h"
#include "telemetry/trace/trace_context.h"

namespace linserve {
namespace {

using std::chrono::steady_clock;

// Says whether OTLP has another try made after such an answer.
bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

// Returns between half of the time and all of it, so that many servers do not come back at once.
std::chrono::milliseconds Spread(std::chrono::milliseconds time) {
  const auto half = static_cast<uint64_t>(time.count() / 2);
  return time - std::chrono::milliseconds(NewSpanId() % (half + 1));
}

}  // namespace

void SpanQueue::Open(std::unique_ptr<SpanSender> sender, Metrics& metrics,
                     const SpanPolicy& policy) {
  Close(steady_clock::now());
  policy_ = policy;
  sender_ = std::move(sender);
  metrics_ = &metrics;
  failing_ = false;
  {
    const MutexLock lock(mutex_);
    closing_ = TraceTime::max();
    ended_ = false;
    open_ = true;
  }
  thread_ = std::thread([this] {
    RunGuarded("the sending of spans", [this] { Run(); });
    const MutexLock lock(mutex_);
    open_ = false;
    ended_ = true;
    changed_.NotifyAll();
  });
}

void SpanQueue::Add(EndedSpan span) {
  const MutexLock lock(mutex_);
  if (!open_) return;
  if (spans_.size() >= policy_.most) return metrics_->SpansEnded(SpanEnd::kDropped, 1);
  spans_.push_back(std::move(span));
  if (spans_.size() == 1 || spans_.size() == policy_.batch) changed_.NotifyAll();
}

void SpanQueue::Close(TraceTime deadline) {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    open_ = false;
    closing_ = deadline;
    changed_.NotifyAll();
    while (!ended_ && changed_.WaitUntil(lock, deadline)) {
    }
  }
  sender_->Cancel();
  thread_.join();
  const MutexLock lock(mutex_);
  metrics_->SpansEnded(SpanEnd::kDropped, spans_.size());
  spans_.clear();
  sender_.reset();
}

void SpanQueue::Run() {
  for (std::vector<EndedSpan> batch = AwaitBatch(); !batch.empty(); batch = AwaitBatch()) {
    SendBatch(batch);
  }
}

// Returns the spans that are to be sent next; none once there will be no more.
std::vector<EndedSpan> SpanQueue::AwaitBatch() {
  MutexLock lock(mutex_);
  while (spans_.empty() && open_) changed_.Wait(lock);
  const TraceTime pause_ends = steady_clock::now() + policy_.pause;
  while (spans_.size() < policy_.batch && open_ && changed_.WaitUntil(lock, pause_ends)) {
  }
  if (steady_clock::now() >= closing_) return {};
  const auto end = spans_.begin() + static_cast<ptrdiff_t>(std::min(spans_.size(), policy_.batch));
  std::vector<EndedSpan> batch(std::make_move_iterator(spans_.begin()),
                               std::make_move_iterator(end));
  spans_.erase(spans_.begin(), end);
  return batch;
}

void SpanQueue::SendBatch(const std::vector<EndedSpan>& batch) {
  const TraceTime give_up = steady_clock::now() + policy_.patience;
  std::chrono::milliseconds pause = policy_.first_retry;
  while (true) {
    const bool last = !open_;  // since a queue that is closed makes one try
    const absl::Status status =
        sender_->Send(batch, Deadline(steady_clock::now() + policy_.timeout));
    Tell(status);
    if (status.ok()) return metrics_->SpansEnded(SpanEnd::kSent, batch.size());
    if (last || !AwaitRetry(status, steady_clock::now() + Spread(pause), give_up)) break;
    pause *= 2;
  }
  metrics_->SpansEnded(SpanEnd::kFailed, batch.size());
}

// Waits until the next try, unless none is to be made. It comes at once when the queue is closed.
bool SpanQueue::AwaitRetry(const absl::Status& status, TraceTime next, TraceTime give_up) {
  if (!IsTransient(status) || next >= give_up) return false;
  MutexLock lock(mutex_);
  while (open_ && changed_.WaitUntil(lock, next)) {
  }
  return steady_clock::now() < closing_;
}

TraceTime SpanQueue::Deadline(TraceTime own) {
  const MutexLock lock(mutex_);
  return std::min(own, closing_);
}

// Logs the first batch that is not taken, and the first one that is taken again.
void SpanQueue::Tell(const absl::Status& status) {
  if (status.ok() != failing_) return;
  failing_ = !status.ok();
  if (failing_) {
    Log(LogLevel::kWarning, "spans are not taken", {{"error", status.ToString()}});
  } else {
    Log(LogLevel::kInfo, "spans are taken again");
  }
}

}  // namespace linserve
