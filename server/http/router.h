#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "http/framing/request_head.h"
#include "http/http_message.h"
#include "http/http_server.h"
#include "http/request_stream.h"

namespace linserve {

// Says what is answered on which path.
class Router {
 public:
  // Leaves one in eight of `connections` threads to probes and scrapes. With `mutual`, all but
  // health is for callers with a certificate.
  Router(HttpHandlers handlers, size_t max_body_bytes, int connections, bool mutual);

  // Answers a request of a caller who has shown a certificate or not. Reads as much of its body as
  // the answer takes. Thread-safe.
  HttpReply Answer(const HttpHead& head, RequestStream& stream, bool certified,
                   HttpRequest& request);

 private:
  struct Page {
    HttpRoute route;
    std::regex pattern;
    bool health = false;   // for anybody, whatever else is guarded
    bool bounded = false;  // how many of its requests may be under way
  };

  void AddHealth();
  void AddStatus();
  void AddPage(const std::string& path, const HttpHandler& handler, bool health);
  // Answers with what `authorize` guards.
  HttpReply GuardedPage(const HttpRequest& request, const char* type,
                        const std::function<std::string()>& text) const;
  HttpReply AnswerPage(const Page& page, const HttpHead& head, RequestStream& stream,
                       HttpRequest& request) const;

  const HttpHandlers handlers_;
  const size_t max_body_bytes_;
  const int most_bounded_;
  const bool mutual_;
  std::vector<Page> pages_;
  std::atomic<int> bounded_ = 0;  // under way
};

}  // namespace linserve
