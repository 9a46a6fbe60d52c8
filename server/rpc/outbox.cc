#include "rpc/outbox.h"

#include <utility>

namespace linserve {

Outbox::Outbox(Hooks hooks, RpcMetrics& metrics) : hooks_(std::move(hooks)), metrics_(metrics) {}

void Outbox::Push(std::unique_ptr<Answer> answer) { Queue(std::move(answer), /*expected=*/true); }

void Outbox::PushNotice(std::unique_ptr<Answer> notice) {
  Queue(std::move(notice), /*expected=*/false);
}

void Outbox::Queue(std::unique_ptr<Answer> answer, bool expected) {
  {
    MutexLock lock(mutex_);
    if (cancelled_ || finished_) return;
    answers_.push_back(std::move(answer));
    if (expected && not_pushed_) --*not_pushed_;
  }
  Pump();
}

void Outbox::Expect(size_t answers) {
  MutexLock lock(mutex_);
  not_pushed_ = answers;
}

void Outbox::FinishWhenEmpty(const grpc::Status& status) {
  {
    MutexLock lock(mutex_);
    if (!final_status_) final_status_ = status;
  }
  Pump();
}

void Outbox::Cancel() {
  std::deque<std::unique_ptr<Answer>> dropped;  // destroyed without the lock: that may end requests
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    final_status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the caller left");
    dropped.swap(answers_);
  }
  Pump();
}

bool Outbox::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

void Outbox::Written(bool ok) {
  metrics_.Sent(std::chrono::steady_clock::now() - write_start_);
  message_.Clear();              // its rows are part of a whole batch's
  std::unique_ptr<Answer> done;  // likewise destroyed without the lock
  if (last_ || !ok) done.swap(current_);
  {
    MutexLock lock(mutex_);
    writing_ = false;
  }
  if (ok) {
    Pump();
  } else {
    Cancel();
  }
}

void Outbox::Closed() {
  if (!current_) return;
  metrics_.Sent(std::chrono::steady_clock::now() - write_start_);
  message_.Clear();
  const std::unique_ptr<Answer> done = std::move(current_);
}

void Outbox::Pump() {
  std::optional<grpc::Status> finish;
  std::unique_ptr<Answer> unfinished;  // destroyed without the lock, too
  {
    MutexLock lock(mutex_);
    if (writing_ || finished_) return;
    if (!cancelled_ && (current_ || !answers_.empty())) {
      writing_ = true;
      if (!current_) {
        current_ = std::move(answers_.front());
        answers_.pop_front();
      }
    } else if (final_status_) {
      finished_ = true;
      finish = final_status_;
      unfinished.swap(current_);
    } else {
      return;
    }
  }
  if (finish) {
    hooks_.finish(*finish);
    return;
  }
  WriteNext();
}

void Outbox::WriteNext() {
  last_ = current_->Next(message_);
  metrics_.Message(Direction::kSent, message_.Length());
  write_start_ = std::chrono::steady_clock::now();
  bool ends = false;
  {
    MutexLock lock(mutex_);
    ends = not_pushed_ == size_t{0} && answers_.empty() && !cancelled_ && last_ &&
           hooks_.write_and_finish;
    finished_ = ends;
  }
  if (ends) {
    hooks_.write_and_finish(&message_);
  } else {
    hooks_.write(&message_);
  }
}

}  // namespace linserve
