#pragma once

#include <httplib.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "batching/clock.h"
#include "http/connection.h"
#include "http/http_limits.h"
#include "http/request_head.h"

namespace linserve {

// The requests of one connection, one after another, as httplib reads and answers them: bounded in
// size and in time, none of which httplib does.
class RequestStream : public httplib::Stream {
 public:
  // A request's body may have so many bytes, however it is packed.
  RequestStream(Connection& connection, const HttpLimits& limits, size_t longest_body)
      : connection_(connection), limits_(limits), longest_body_(longest_body) {}

  // Waits for the next request to begin; false if none does.
  bool Await();

  // Reads the head of the request that has begun. After a fault nothing more can be read.
  std::optional<HeadFault> ReadHead();

  // What was read is not whole, or what was written.
  bool failed() const { return read_failed_ || write_failed_; }

  bool is_readable() const override { return !read_failed_; }
  bool is_writable() const override { return !write_failed_; }
  ssize_t read(char* to, size_t most) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return connection_.descriptor(); }

 private:
  // Waits for bytes. REQUIRES: there are none.
  bool Fill(TimePoint deadline);
  // How many bytes they gave; 0: none are left.
  size_t TakeHead(char* to, size_t most);
  size_t TakeBody(char* to, size_t most);
  // Of a body or an answer that began then, after so many bytes of it.
  TimePoint DeadlineOf(TimePoint begin, size_t bytes) const;

  Connection& connection_;
  const HttpLimits limits_;
  const size_t longest_body_;

  // What has come and was not taken: first the head, then the buffer from begin_ to end_.
  std::string head_;
  size_t head_taken_ = 0;
  std::array<char, 16 << 10> buffer_{};
  size_t begin_ = 0;
  size_t end_ = 0;

  // Of the request's body and answer.
  TimePoint body_begin_;
  TimePoint answer_begin_;
  size_t body_bytes_ = 0;
  size_t answer_bytes_ = 0;
  size_t line_bytes_ = 0;  // of a line that goes on
  bool read_failed_ = false;
  bool write_failed_ = false;
};

}  // namespace linserve
