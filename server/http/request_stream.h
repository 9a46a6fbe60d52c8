#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/threads/clock.h"
#include "http/connection.h"
#include "http/framing/body_reader.h"
#include "http/framing/http_fault.h"
#include "http/framing/request_head.h"
#include "http/http_limits.h"
#include "http/open_connections.h"

namespace linserve {

// Reads the requests of one connection, one after another, and sends their answers, bounded in size
// and in time. Only ReadBody() waits for the other side: all else goes on in Await(), so that it
// takes no thread from others. After a fault nothing more can be read.
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
    kMore,  // has to come or to go, until deadline()
    kEnd,   // no request follows
  };

  // Goes on without waiting: sends what is left of the last answer, skips what is left of its
  // request's body, and reads what has come of the next one's head.
  Next Await();

  // For what Await() said kMore: what that is, what the socket has to be ready for (POLLIN or
  // POLLOUT), and until when.
  OpenConnections::For waits_for() const;
  short wanted() const { return wanted_; }
  TimePoint deadline() const;

  // Waits for no more: a head of which only a part has come is faulty.
  Next GiveUp();

  // Takes the head that is there; null if it is faulty.
  std::optional<HttpHead> TakeHead();

  // Reads some of the request's body, which is there until the next call. Empty at its end, and
  // after a fault. A caller who waits for leave to send it is given that.
  std::string_view ReadBody();

  // Skips what has come of the rest of the body. False if the connection cannot go on, since the
  // rest is too long, or faulty, or its caller waits for leave to send it.
  bool SkipBody();

  const std::optional<HttpFault>& fault() const { return fault_; }

  // Is what is sent.
  struct Answer {
    std::string head{};
    std::string body{};
    std::shared_ptr<void> until_sent{};  // lives as long as the others
  };
  // Begins an answer, which Await() sends; `last` if the connection ends with it.
  void Begin(Answer answer, bool last);

 private:
  using For = OpenConnections::For;

  // These are parts of Await(). They return nullopt once they are done.
  std::optional<Next> GoOnAnswering();
  std::optional<Next> GoOnSkipping();
  Next GoOnEnding();
  Next GoOnWithHead();

  Next Wait(For what, short wanted, TimePoint deadline = {});
  // Sends what there is room for of `text`, and takes it off its front. Returns what the socket has
  // to be ready for then, 0: all was sent.
  short Send(std::string_view& text);
  // Takes some of the body from what was received.
  std::string_view TakeBody();
  // Reads what has come, after all of the others were taken. Returns what TryRead() does.
  Connection::Attempt TryFill();
  // Waits for bytes, after all of the others were taken; false if none come.
  bool Fill(TimePoint deadline);
  // Returns until when the next bytes may take, of a body or an answer that began then, after so
  // many.
  TimePoint DeadlineOf(TimePoint begin, size_t bytes) const;
  void AskForBody();

  Connection& connection_;
  const HttpLimits limits_;
  const size_t longest_body_;

  For waits_for_ = For::kRequest;  // or the rest of its head
  bool ending_ = false;            // nothing more is sent
  short wanted_ = POLLIN;
  TimePoint deadline_;  // but of a head, whose is always known

  // Holds what has come and was not taken. There is no buffer while nothing is under way, as there
  // may be thousands of connections.
  using Buffer = std::array<char, 16 << 10>;
  std::unique_ptr<Buffer> buffer_;
  std::string_view received_;

  // These belong to the wait for a request: its head, once that has begun, and when the wait has.
  std::optional<HeadReader> head_;
  TimePoint since_ = std::chrono::steady_clock::now();

  // These belong to the request's body.
  BodyReader body_;
  bool caller_waits_ = false;  // before it sends its body
  TimePoint body_begin_;
  size_t body_bytes_ = 0;
  size_t skipped_ = 0;
  std::optional<HttpFault> fault_;

  // These belong to its answer.
  Answer answer_;
  std::string_view unsent_head_;
  std::string_view unsent_body_;
  TimePoint answer_begin_;
  size_t answer_bytes_ = 0;
  bool send_failed_ = false;
  bool last_ = false;  // the connection ends with it
};

}  // namespace linserve
