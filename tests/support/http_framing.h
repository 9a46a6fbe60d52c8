#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/framing/body_reader.h"
#include "http/framing/http_fault.h"
#include "http/framing/request_head.h"

namespace linserve {

struct FramedRequest {
  HttpHead head;
  std::string body;
  size_t end = 0;  // where the next request begins
};

// Finds the requests in what comes on one connection, in pieces of so many bytes, as the server
// does: up to a fault, or to a request that is the last of its connection.
class FramedRequests {
 public:
  FramedRequests(std::string_view received, size_t piece) : left_(received), piece_(piece) {
    const size_t size = received.size();
    while (Read()) whole_.back().end = size - left_.size() - now_.size();
  }

  const std::vector<FramedRequest>& whole() const { return whole_; }
  // Returns the fault of the request after these; null if that has not come as a whole, or not at
  // all.
  const std::optional<HttpFault>& fault() const { return fault_; }

 private:
  // Returns false if there is not one more whole request.
  bool Read() {
    if (!whole_.empty() && whole_.back().head.last) return false;
    HeadReader head;
    while (!head.Take(now_)) {
      if (!Fill()) return false;
    }
    fault_ = head.fault();
    if (fault_) return false;
    BodyReader body(head.head());
    std::string read;
    while (!body.ended()) {
      if (now_.empty() && !Fill()) return false;
      read += body.Take(now_);
      fault_ = body.fault();
      if (fault_) return false;
    }
    whole_.push_back({.head = std::move(head.head()), .body = std::move(read)});
    return true;
  }

  // Returns false at the end.
  bool Fill() {
    now_ = left_.substr(0, piece_);
    left_.remove_prefix(now_.size());
    return !now_.empty();
  }

  std::string_view left_;
  const size_t piece_;
  std::string_view now_;
  std::vector<FramedRequest> whole_;
  std::optional<HttpFault> fault_;
};

}  // namespace linserve
