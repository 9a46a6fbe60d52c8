#include "rpc/calls/answer_order.h"

#include <utility>

namespace linserve {

void AnswerOrder::Send(int64_t number, Outcome outcome) {
  if (!ordered_) return Push(std::move(outcome));
  {
    MutexLock lock(mutex_);
    waiting_[number] = std::move(outcome);
    // A push may run gRPC's callbacks, which send again.
    if (std::exchange(sending_, true)) return;
  }
  while (true) {
    Outcome next;
    {
      MutexLock lock(mutex_);
      const auto first = waiting_.begin();
      sending_ = first != waiting_.end() && first->first == next_;
      if (!sending_) return;
      next = std::move(first->second);
      waiting_.erase(first);
      ++next_;
    }
    Push(std::move(next));
  }
}

void AnswerOrder::Push(Outcome outcome) {
  if (ended_) return;
  if (outcome.answer) return outbox_.Push(std::move(outcome.answer));
  ended_ = true;
  outbox_.FinishWhenEmpty(outcome.end);
}

}  // namespace linserve
