#include "http/request_stream.h"

#include <algorithm>
#include <chrono>

#include "core/endpoint.h"

namespace linserve {
namespace {

TimePoint Now() { return std::chrono::steady_clock::now(); }

void Describe(const std::optional<Endpoint>& end, std::string& ip, int& port) {
  ip = end ? end->Machine() : "";
  port = end ? end->port : 0;
}

}  // namespace

bool RequestStream::Await() { return begin_ < end_ || Fill(Now() + limits_.idle); }

std::optional<HeadFault> RequestStream::ReadHead() {
  const TimePoint deadline = Now() + limits_.patience;
  head_.clear();
  head_taken_ = 0;
  body_bytes_ = 0;
  answer_bytes_ = 0;
  line_bytes_ = 0;
  size_t size = 0;
  while (size == 0) {
    if (begin_ == end_ && !Fill(deadline)) return HeadFault{408, "the request did not come whole"};
    const size_t searched = head_.size();
    head_.append(buffer_.data() + begin_, end_ - begin_);
    begin_ = end_;
    size = HeadSize(head_, searched);
    if (size > 0) break;
    if (const auto too_long = TooLong(head_)) return too_long;
  }
  begin_ -= head_.size() - size;
  head_.resize(size);
  if (const auto fault = FaultOf(head_)) return fault;
  // httplib matches ranges by a recursive std::regex, and repeats an answer for each, thousands of
  // times. A server may overlook them.
  head_ = WithoutField(head_, "Range");
  body_begin_ = Now();
  return std::nullopt;
}

ssize_t RequestStream::read(char* to, size_t most) {
  size_t size = TakeHead(to, most);
  if (size == 0) size = TakeBody(to, most);
  // Byte by byte httplib reads lines, those before each chunk of a body among them, without a
  // bound.
  line_bytes_ = most == 1 && *to != '\n' ? line_bytes_ + 1 : 0;
  if (size == 0 || line_bytes_ > kLongestLine) read_failed_ = true;
  return read_failed_ ? -1 : static_cast<ssize_t>(size);
}

ssize_t RequestStream::write(const char* from, size_t size) {
  if (write_failed_) return -1;
  if (answer_bytes_ == 0) answer_begin_ = Now();
  const ssize_t written = connection_.Write(from, size, DeadlineOf(answer_begin_, answer_bytes_));
  if (written < 0) write_failed_ = true;
  if (written > 0) answer_bytes_ += static_cast<size_t>(written);
  return written;
}

void RequestStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  Describe(PeerOf(socket()), ip, port);
}

void RequestStream::get_local_ip_and_port(std::string& ip, int& port) const {
  Describe(LocalEndOf(socket()), ip, port);
}

bool RequestStream::Fill(TimePoint deadline) {
  const ssize_t size = connection_.Read(buffer_.data(), buffer_.size(), deadline);
  begin_ = 0;
  end_ = static_cast<size_t>(std::max<ssize_t>(size, 0));
  return size > 0;
}

size_t RequestStream::TakeHead(char* to, size_t most) {
  const size_t size = head_.copy(to, most, head_taken_);
  head_taken_ += size;
  return size;
}

size_t RequestStream::TakeBody(char* to, size_t most) {
  if (body_bytes_ > longest_body_) return 0;
  if (begin_ == end_ && !Fill(DeadlineOf(body_begin_, body_bytes_))) return 0;
  const size_t size = std::min(most, end_ - begin_);
  std::copy_n(buffer_.data() + begin_, size, to);
  begin_ += size;
  body_bytes_ += size;
  return size;
}

TimePoint RequestStream::DeadlineOf(TimePoint begin, size_t bytes) const {
  const auto earned =
      std::chrono::milliseconds(static_cast<int64_t>(bytes) * 1000 / limits_.bytes_per_second);
  return std::min(Now() + limits_.stall, begin + limits_.patience + earned);
}

}  // namespace linserve
