#include "engine/answers.h"

#include <algorithm>

namespace linserve {

Answers::Answers(std::shared_ptr<ResultSink> sink, size_t sequences, TimePoint deadline,
                 ModelMetrics& metrics, OpenRequests& open)
    : deadline_(deadline),
      metrics_(metrics.shared_from_this()),
      open_(open),
      sink_(std::move(sink)),
      unanswered_(sequences, false) {}

Answers::~Answers() { open_.Forget(*this); }

void Answers::Expect(size_t index) {
  MutexLock lock(mutex_);
  unanswered_[index] = true;
  ++count_;
}

// Returns the sink if the sequence has no answer yet, and notes that it has one now.
std::shared_ptr<ResultSink> Answers::Close(size_t index) {
  MutexLock lock(mutex_);
  if (!unanswered_[index]) return nullptr;
  unanswered_[index] = false;
  if (--count_ == 0) return std::exchange(sink_, nullptr);
  return sink_;
}

void Answers::Deliver(size_t index, absl::StatusOr<ItemResult> result) {
  const std::shared_ptr<ResultSink> sink = Close(index);
  if (sink == nullptr) return;
  if (absl::IsCancelled(result.status()) && open_.given_up()) result = open_.why_given_up();
  metrics_->Delivered(result.status().raw_code());
  sink->Deliver(index, std::move(result));
}

void Answers::Report(size_t index, const ItemProgress& progress) {
  std::shared_ptr<ResultSink> sink;  // used without the lock, since it may call back
  {
    MutexLock lock(mutex_);
    sink = sink_;
  }
  if (sink != nullptr) sink->Report(index, progress);
}

bool Answers::Abandoned() const {
  if (open_.given_up()) return true;
  MutexLock lock(mutex_);
  return sink_ == nullptr || sink_->Abandoned();
}

size_t Answers::AnswerAll(const absl::Status& status) {
  std::vector<size_t> indices;
  std::shared_ptr<ResultSink> sink;
  {
    MutexLock lock(mutex_);
    if (sink_ == nullptr) return 0;
    for (size_t i = 0; i < unanswered_.size(); ++i) {
      if (unanswered_[i]) indices.push_back(i);
      unanswered_[i] = false;
    }
    count_ = 0;
    sink.swap(sink_);
  }
  for (const size_t index : indices) {
    metrics_->Delivered(status.raw_code());
    sink->Deliver(index, status);
  }
  return indices.size();
}

OpenRequests::OpenRequests(Clock& clock, std::function<TimePoint()> expired)
    : clock_(clock), expired_(std::move(expired)), thread_([this] { Work(); }) {}

void OpenRequests::Watch(const std::shared_ptr<Answers>& request, bool generates) {
  bool sooner = false;
  {
    MutexLock lock(mutex_);
    requests_[{request->deadline(), request.get()}] = {request, generates};
    sooner = request->deadline() < wakes_;
  }
  if (sooner) changed_.NotifyAll();
}

void OpenRequests::Forget(const Answers& request) {
  MutexLock lock(mutex_);
  requests_.erase({request.deadline(), &request});
}

void OpenRequests::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

size_t OpenRequests::AnswerGenerating(const absl::Status& status) {
  std::vector<std::shared_ptr<Answers>> generating;  // they forget themselves without the lock
  {
    MutexLock lock(mutex_);
    for (const auto& [key, watched] : requests_) {
      if (!watched.generates) continue;
      if (auto request = watched.request.lock()) generating.push_back(std::move(request));
    }
  }
  size_t answered = 0;
  for (const auto& request : generating) answered += request->AnswerAll(status);
  return answered;
}

void OpenRequests::GiveUp(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (given_up_) return;
  why_given_up_ = status;
  given_up_ = true;
}

absl::Status OpenRequests::why_given_up() const {
  MutexLock lock(mutex_);
  return why_given_up_;
}

// Waits for the earliest deadline there was when it last looked. That one is often met long before
// it comes; then later ones need not wake the timer.
void OpenRequests::Work() {
  MutexLock lock(mutex_);
  TimePoint tell = TimePoint::max();  // when the others are told that requests have expired
  while (!stopped_) {
    auto due = TakeDue();
    if (due != nullptr || tell <= clock_.Now()) {
      lock.Unlock();
      if (due != nullptr) {
        RunGuarded("an expired request", [&due] {
          due->AnswerAll(absl::DeadlineExceededError("the deadline passed before the result"));
        });
        tell = clock_.Now();
      } else {
        tell = TimePoint::max();
        RunGuarded("expired requests", [&] { tell = expired_(); });
      }
      due.reset();
      lock.Lock();
      continue;
    }
    wakes_ = tell;
    if (!requests_.empty()) wakes_ = std::min(wakes_, requests_.begin()->first.first);
    if (wakes_ == TimePoint::max()) {
      changed_.Wait(lock);
    } else {
      clock_.WaitUntil(lock, changed_, wakes_);
    }
  }
}

// Returns a request whose deadline has passed; null if there is none.
std::shared_ptr<Answers> OpenRequests::TakeDue() {
  const TimePoint now = clock_.Now();
  while (!requests_.empty() && requests_.begin()->first.first <= now) {
    auto request = requests_.begin()->second.request.lock();
    requests_.erase(requests_.begin());
    if (request != nullptr) return request;
  }
  return nullptr;
}

}  // namespace linserve
