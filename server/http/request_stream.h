#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
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

  // Says what there is of the next request.
  enum class Next : uint8_t {
    kHead,  // it is whole or faulty
    kMore,  // has to come, until deadline()
    kEnd,   // no request follows
  };

  // Reads what has come of the next request's head, without waiting.
  Next Await();

  // For what Await() said kMore: whether nothing of a request has come, what the socket has to be
  // ready for (POLLIN or POLLOUT), and until when.
  bool idle() const { return !head_ && !connection_.handshaking(); }
  short wanted() const { return wanted_; }
  TimePoint deadline() const;

  // Waits for no more: a head of which only a part has come is faulty.
  Next GiveUp();

  // Takes the head that is there; null if it is faulty.
  std::optional<HttpHead> TakeHead();

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
  // Makes room for bytes, after all of the others were taken.
  void MakeRoom();
  // Waits for bytes, after all of the others were taken; false if none come.
  bool Fill(TimePoint deadline);
  // Returns until when the next bytes may take, of a body or an answer that began then, after so
  // many.
  TimePoint DeadlineOf(TimePoint begin, size_t bytes) const;
  void AskForBody();

  Connection& connection_;
  const HttpLimits limits_;
  const size_t longest_body_;

  // Holds what has come and was not taken. There is no buffer while nothing is under way, as there
  // may be thousands of connections.
  using Buffer = std::array<char, 16 << 10>;
  std::unique_ptr<Buffer> buffer_;
  std::string_view received_;

  // These belong to the wait for a request: its head, once that has begun, and when the wait has.
  std::optional<HeadReader> head_;
  TimePoint since_ = std::chrono::steady_clock::now();
  short wanted_ = POLLIN;

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
