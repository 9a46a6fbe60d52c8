#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "core/threads/clock.h"
#include "http/connection.h"
#include "http/framing/body_reader.h"
#include "http/framing/http_fault.h"
#include "http/framing/request_head.h"
#include "http/http_limits.h"

namespace linserve {

// Reads the requests of one connection, one after another, and sends their answers, bounded in size
// and in time. After a fault nothing more can be read.
class RequestStream {
 public:
  // A request's body may have so many bytes, however it is packed.
  RequestStream(Connection& connection, const HttpLimits& limits, size_t longest_body)
      : connection_(connection), limits_(limits), longest_body_(longest_body) {}
  RequestStream(const RequestStream&) = delete;
  RequestStream& operator=(const RequestStream&) = delete;

  // Waits for the next request to begin; false if none does.
  bool Await();

  // Reads the head of the request that has begun; null after a fault.
  std::optional<HttpHead> ReadHead();

  // Reads some of the request's body, which is there until the next call. Empty at its end, and
  // after a fault. A caller who waits for leave to send it is given that.
  std::string_view ReadBody();

  // Reads what is left of the body, if it is little. False if the connection cannot go on, since
  // what comes next is not a request.
  bool SkipBody();

  const std::optional<HttpFault>& fault() const { return fault_; }

  // Sends some of an answer; false once that has failed.
  bool Write(std::string_view text);

 private:
  // Waits for bytes, after all of the others were taken; false if none come.
  bool Fill(TimePoint deadline);
  // Returns until when the next bytes may take, of a body or an answer that began then, after so
  // many.
  TimePoint DeadlineOf(TimePoint begin, size_t bytes) const;
  void AskForBody();

  Connection& connection_;
  const HttpLimits limits_;
  const size_t longest_body_;

  // Holds what has come and was not taken.
  std::array<char, 16 << 10> buffer_{};
  std::string_view received_;

  // These belong to the request's body and answer.
  BodyReader body_;
  bool caller_waits_ = false;  // before it sends its body
  TimePoint body_begin_;
  TimePoint answer_begin_;
  size_t body_bytes_ = 0;
  size_t answer_bytes_ = 0;
  std::optional<HttpFault> fault_;
  bool write_failed_ = false;
};

}  // namespace linserve
