#include "rpc/calls/outbox.h"

#include <utility>

#include "core/threads/guarded.h"
#include "rpc/calls/grpc_status.h"

namespace linserve {
namespace {

// A message of so many bytes is long enough: no other answer's need come with it.
constexpr size_t kLongMessage = 64 << 10;

}  // namespace

Outbox::Outbox(Hooks hooks, RpcMetrics& metrics) : hooks_(std::move(hooks)), metrics_(metrics) {}

void Outbox::Push(std::unique_ptr<Answer> answer) { Queue(std::move(answer), /*expected=*/true); }

void Outbox::PushNotice(std::unique_ptr<Answer> notice) {
  Queue(std::move(notice), /*expected=*/false);
}

void Outbox::Queue(std::unique_ptr<Answer> answer, bool expected) {
  {
    MutexLock lock(mutex_);
    if (cancelled_ || finished_ || final_status_) return;
    answers_.push_back(std::move(answer));
    if (expected && not_pushed_) --*not_pushed_;
  }
  Pump();
}

void Outbox::Expect(size_t answers) {
  MutexLock lock(mutex_);
  not_pushed_ = answers;
}

void Outbox::FinishWhenEmpty(grpc::Status status) {
  {
    MutexLock lock(mutex_);
    if (!final_status_) final_status_ = std::move(status);
  }
  Pump();
}

void Outbox::Cancel() { Abort({grpc::StatusCode::CANCELLED, "the caller left"}); }

void Outbox::Abort(grpc::Status status) { Stop(std::move(status), /*was_writing=*/false); }

void Outbox::Stop(grpc::Status status, bool was_writing) {
  std::deque<std::unique_ptr<Answer>> dropped;  // destroyed without the lock: that may end requests
  {
    MutexLock lock(mutex_);
    if (was_writing) writing_ = false;
    if (!std::exchange(cancelled_, true)) final_status_ = std::move(status);
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
  message_.Clear();  // its rows belong to a whole batch's
  // These are destroyed without the lock.
  const std::vector<std::unique_ptr<Answer>> ended = std::exchange(ended_, {});
  const std::unique_ptr<Answer> broken = ok ? nullptr : std::move(current_);
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
  if (ended_.empty()) return;
  metrics_.Sent(std::chrono::steady_clock::now() - write_start_);
  message_.Clear();
  const std::vector<std::unique_ptr<Answer>> ended = std::exchange(ended_, {});
}

void Outbox::Pump() {
  std::optional<grpc::Status> finish;
  // These are destroyed without the lock.
  std::vector<std::unique_ptr<Answer>> unsent;
  std::unique_ptr<Answer> unfinished;
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
      finish = std::move(final_status_);
      unsent.swap(ended_);
      unfinished.swap(current_);
    } else {
      return;
    }
  }
  if (finish) {
    hooks_.finish(*std::move(finish));
    return;
  }
  WriteNext();
}

// Makes the next message of the current answer, with those of others that may come with it.
void Outbox::Make(WireMessage& message) {
  bool last = current_->Next(message);
  const int field = current_->field_of_others();
  while (last) {
    ended_.push_back(std::move(current_));
    if (field == 0 || message.size() >= kLongMessage) return;
    {
      const MutexLock lock(mutex_);
      if (answers_.empty() || answers_.front()->field_of_others() != field) return;
      current_ = std::move(answers_.front());
      answers_.pop_front();
    }
    WireMessage other;
    last = current_->Next(other);
    message.AddMessage(field, std::move(other));
  }
}

// Makes the next message; false if that fails, which ends the stream.
bool Outbox::MakeNext() {
  const absl::Status made = Guarded("an answer", [this] {
    WireMessage message;
    Make(message);
    message_ = std::move(message).Take();
  });
  if (made.ok()) return true;
  if (current_) current_->Failed(made);
  Stop(ToGrpcStatus(made), /*was_writing=*/true);
  return false;
}

void Outbox::WriteNext() {
  if (!MakeNext()) return;
  metrics_.Message(Direction::kSent, message_.Length());
  write_start_ = std::chrono::steady_clock::now();
  bool ends = false;
  {
    MutexLock lock(mutex_);
    ends = not_pushed_ == size_t{0} && answers_.empty() && !cancelled_ && !current_ &&
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
