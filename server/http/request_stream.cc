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
  while (true) {
    if (received_.empty()) {
      MakeRoom();
      const auto [size, wanted] = connection_.TryRead(buffer_->data(), buffer_->size());
      if (wanted != 0) {
        wanted_ = wanted;
        buffer_.reset();
        return Next::kMore;
      }
      if (size <= 0) return GiveUp();
      received_ = {buffer_->data(), static_cast<size_t>(size)};
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

TimePoint RequestStream::deadline() const {
  return since_ + (idle() ? limits_.idle + limits_.grace : limits_.patience);
}

RequestStream::Next RequestStream::GiveUp() {
  if (!head_) return Next::kEnd;
  fault_ = {408, "the request did not come whole"};
  return Next::kHead;
}

std::optional<HttpHead> RequestStream::TakeHead() {
  body_bytes_ = 0;
  answer_bytes_ = 0;
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
    caller_waits_ = false;
    const size_t before = received_.size();
    const std::string_view data = body_.Take(received_);
    body_bytes_ += before - received_.size();
    fault_ = body_.fault();
    if (body_bytes_ > longest_body_) fault_ = {413, "the body is too long"};
    if (!data.empty() && !fault_) return data;
  }
  return {};
}

bool RequestStream::SkipBody() {
  size_t skipped = 0;
  while (!body_.ended() && !caller_waits_ && !fault_ && skipped <= kMostSkipped) {
    skipped += ReadBody().size();
  }
  return body_.ended() && !fault_;
}

bool RequestStream::Write(std::string_view text) {
  if (answer_bytes_ == 0) answer_begin_ = Now();
  while (!text.empty() && !write_failed_) {
    const ssize_t written =
        connection_.Write(text.data(), text.size(), DeadlineOf(answer_begin_, answer_bytes_));
    write_failed_ = written < 0;
    if (write_failed_) break;
    answer_bytes_ += static_cast<size_t>(written);
    text.remove_prefix(static_cast<size_t>(written));
  }
  since_ = Now();
  return !write_failed_;
}

void RequestStream::AskForBody() {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  // What cannot be sent is noticed by the answer.
  connection_.Write(kContinue.data(), kContinue.size(), Now() + limits_.stall);
}

void RequestStream::MakeRoom() {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<Buffer>();
}

bool RequestStream::Fill(TimePoint deadline) {
  MakeRoom();
  const ssize_t size = connection_.Read(buffer_->data(), buffer_->size(), deadline);
  received_ = {buffer_->data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
  return size > 0;
}

TimePoint RequestStream::DeadlineOf(TimePoint begin, size_t bytes) const {
  const auto earned =
      std::chrono::milliseconds(static_cast<int64_t>(bytes) * 1000 / limits_.bytes_per_second);
  return std::min(Now() + limits_.stall, begin + limits_.patience + earned);
}

}  // namespace linserve
