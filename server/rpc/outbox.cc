#include "rpc/outbox.h"

#include <utility>

#include "inference/grpc_service.pb.h"
#include "linserve/v1/embedding.pb.h"

namespace linserve {

template <typename Message>
Outbox<Message>::Outbox(Hooks hooks, RpcMetrics& metrics)
    : hooks_(std::move(hooks)), metrics_(metrics) {}

template <typename Message>
void Outbox<Message>::Push(std::unique_ptr<Answer<Message>> answer) {
  {
    MutexLock lock(mutex_);
    if (cancelled_ || finished_) return;
    answers_.push_back(std::move(answer));
    if (not_pushed_) --*not_pushed_;
  }
  Pump();
}

template <typename Message>
void Outbox<Message>::Expect(size_t answers) {
  MutexLock lock(mutex_);
  not_pushed_ = answers;
}

template <typename Message>
void Outbox<Message>::FinishWhenEmpty(const grpc::Status& status) {
  {
    MutexLock lock(mutex_);
    if (!final_status_) final_status_ = status;
  }
  Pump();
}

template <typename Message>
void Outbox<Message>::Cancel() {
  std::deque<std::unique_ptr<Answer<Message>>>
      dropped;  // destroyed without the lock: that may end requests
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    final_status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the caller left");
    dropped.swap(answers_);
  }
  Pump();
}

template <typename Message>
bool Outbox<Message>::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

template <typename Message>
void Outbox<Message>::Written(bool ok) {
  metrics_.Sent(std::chrono::steady_clock::now() - write_start_);
  std::unique_ptr<Answer<Message>> done;  // likewise destroyed without the lock
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

template <typename Message>
void Outbox<Message>::Closed() {
  if (!current_) return;
  metrics_.Sent(std::chrono::steady_clock::now() - write_start_);
  const std::unique_ptr<Answer<Message>> done = std::move(current_);
}

template <typename Message>
void Outbox<Message>::Pump() {
  std::optional<grpc::Status> finish;
  std::unique_ptr<Answer<Message>> unfinished;  // destroyed without the lock, too
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

template <typename Message>
void Outbox<Message>::WriteNext() {
  last_ = current_->Next(message_);
  metrics_.Message(Direction::kSent, message_.ByteSizeLong());
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

template class Outbox<v1::EmbedResponse>;
template class Outbox<inference::ModelStreamInferResponse>;

}  // namespace linserve
