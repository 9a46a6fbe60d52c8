#include "http/request_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace linserve {
namespace {

// So much of a body that is not wanted is read and dropped.
constexpr size_t kMostSkipped = 1 << 20;

TimePoint Now() { return std::chrono::steady_clock::now(); }

}  // namespace

RequestStream::Next RequestStream::Await() {
  std::optional<Next> next = GoOnAnswering();
  if (!next && !last_) next = GoOnSkipping();
  if (next) return *next;
  return last_ ? GoOnEnding() : GoOnWithHead();
}

std::optional<RequestStream::Next> RequestStream::GoOnAnswering() {
  for (std::string_view* text : {&unsent_head_, &unsent_body_}) {
    const short wanted = Send(*text);
    if (send_failed_) return Next::kEnd;
    if (wanted == 0) continue;
    return Wait(For::kAnswer, wanted, DeadlineOf(answer_begin_, answer_bytes_));
  }
  if (!answer_.head.empty()) since_ = Now();
  answer_ = {};
  return std::nullopt;
}

short RequestStream::Send(std::string_view& text) {
  while (!text.empty()) {
    const auto [written, wanted] = connection_.TryWrite(text.data(), text.size());
    if (wanted != 0) return wanted;
    send_failed_ = written < 0;
    if (send_failed_) break;
    answer_bytes_ += static_cast<size_t>(written);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

std::optional<RequestStream::Next> RequestStream::GoOnSkipping() {
  if (body_.ended()) return std::nullopt;
  while (true) {
    last_ = !SkipBody();
    if (last_ || body_.ended()) break;
    const auto [size, wanted] = TryFill();
    if (wanted != 0) return Wait(For::kEnd, wanted, DeadlineOf(body_begin_, body_bytes_));
    if (size <= 0) return Next::kEnd;
  }
  since_ = Now();
  return std::nullopt;
}

RequestStream::Next RequestStream::GoOnEnding() {
  if (!std::exchange(ending_, true)) {
    connection_.End();
    received_ = {};
    skipped_ = 0;
    Wait(For::kEnd, POLLIN, Now() + limits_.linger);
  }
  while (Now() < deadline_ && skipped_ <= kMostSkipped) {
    const auto [size, wanted] = connection_.TryOverlook();
    if (wanted != 0) return Next::kMore;
    if (size <= 0) break;
    skipped_ += static_cast<size_t>(size);
  }
  return Next::kEnd;
}

RequestStream::Next RequestStream::GoOnWithHead() {
  waits_for_ = For::kRequest;
  while (true) {
    if (received_.empty()) {
      const auto [size, wanted] = TryFill();
      if (wanted != 0) return Wait(For::kRequest, wanted);
      if (size <= 0) return GiveUp();
    }
    if (!head_) {
      head_.emplace();
      since_ = Now();
    }
    if (head_->Take(received_)) {
      fault_ = head_->fault();
      return Next::kHead;
    }
  }
}

RequestStream::Next RequestStream::Wait(For what, short wanted, TimePoint deadline) {
  waits_for_ = what;
  wanted_ = wanted;
  deadline_ = deadline;
  if (received_.empty()) buffer_.reset();
  return Next::kMore;
}

OpenConnections::For RequestStream::waits_for() const {
  const bool begun = head_ || connection_.handshaking();
  return waits_for_ == For::kRequest && begun ? For::kHead : waits_for_;
}

TimePoint RequestStream::deadline() const {
  if (waits_for_ != For::kRequest) return deadline_;
  const bool idle = waits_for() == For::kRequest;
  return since_ + (idle ? limits_.idle + limits_.grace : limits_.patience);
}

RequestStream::Next RequestStream::GiveUp() {
  if (!head_ || waits_for_ != For::kRequest) return Next::kEnd;
  fault_ = {408, "the request did not come whole"};
  return Next::kHead;
}

std::optional<HttpHead> RequestStream::TakeHead() {
  body_bytes_ = 0;
  skipped_ = 0;
  if (fault_) return std::nullopt;
  std::optional<HttpHead> head = std::move(head_->head());
  head_.reset();
  body_ = BodyReader(*head);
  caller_waits_ = head->expects_continue;
  body_begin_ = Now();
  return head;
}

std::string_view RequestStream::ReadBody() {
  while (!body_.ended() && !fault_) {
    if (received_.empty()) {
      if (caller_waits_) AskForBody();
      if (!Fill(DeadlineOf(body_begin_, body_bytes_))) {
        fault_ = {408, "the body did not come whole"};
        break;
      }
    }
    const std::string_view data = TakeBody();
    // What is skipped may be longer: it takes no memory.
    if (!fault_ && body_bytes_ > longest_body_) fault_ = {413, "the body is too long"};
    if (!data.empty() && !fault_) return data;
  }
  return {};
}

std::string_view RequestStream::TakeBody() {
  caller_waits_ = false;
  const size_t before = received_.size();
  const std::string_view data = body_.Take(received_);
  body_bytes_ += before - received_.size();
  fault_ = body_.fault();
  return data;
}

bool RequestStream::SkipBody() {
  const auto is_short = [this] {
    return skipped_ <= kMostSkipped && body_.left() <= kMostSkipped - skipped_;
  };
  while (!body_.ended() && !caller_waits_ && !fault_ && is_short()) {
    if (received_.empty() && TryFill().result <= 0) return true;
    skipped_ += TakeBody().size();
  }
  return body_.ended() && !fault_;
}

void RequestStream::Begin(Answer answer, bool last) {
  answer_ = std::move(answer);
  unsent_head_ = answer_.head;
  unsent_body_ = answer_.body;
  answer_begin_ = Now();
  answer_bytes_ = 0;
  last_ = last;
}

void RequestStream::AskForBody() {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  std::string_view text = kContinue;
  const TimePoint deadline = Now() + limits_.stall;
  short wanted = Send(text);
  while (wanted != 0 && connection_.Ready(wanted, deadline)) wanted = Send(text);
  send_failed_ = send_failed_ || !text.empty();  // as is noticed by the answer
}

Connection::Attempt RequestStream::TryFill() {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<Buffer>();
  const Connection::Attempt attempt = connection_.TryRead(buffer_->data(), buffer_->size());
  received_ = {buffer_->data(), static_cast<size_t>(std::max<ssize_t>(attempt.result, 0))};
  return attempt;
}

bool RequestStream::Fill(TimePoint deadline) {
  Connection::Attempt attempt = TryFill();
  while (attempt.wanted != 0 && connection_.Ready(attempt.wanted, deadline)) attempt = TryFill();
  return attempt.result > 0;
}

TimePoint RequestStream::DeadlineOf(TimePoint begin, size_t bytes) const {
  const auto earned =
      std::chrono::milliseconds(static_cast<int64_t>(bytes) * 1000 / limits_.bytes_per_second);
  return std::min(Now() + limits_.stall, begin + limits_.patience + earned);
}

}  // namespace linserve
