#pragma once

#include <re2/re2.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
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
  // One in eight of the threads is left to probes and scrapes. Under mutual TLS all but health is
  // for callers with a certificate.
  Router(HttpHandlers handlers, const HttpOptions& options);

  // Answers a request of a caller who has shown a certificate or not. Reads as much of its body as
  // the answer takes. Thread-safe.
  HttpReply Answer(const HttpHead& head, RequestStream& stream, bool certified,
                   HttpRequest& request);

  // Gives a reply what every reply to such a request has. Thread-safe.
  void Finish(const HttpHead& head, const HttpRequest& request, HttpReply& reply) const;

  // Counts a reply, just before it is sent.
  void Replied(const HttpReply& reply) const {
    if (handlers_.replied) handlers_.replied(reply.status);
  }

 private:
  struct Page {
    HttpRoute route;
    std::unique_ptr<const RE2> pattern;  // it can be neither copied nor moved
    bool health = false;                 // for anybody, whatever else is guarded
    bool bounded = false;                // how many of its requests may be under way
  };

  HttpReply AnswerPath(const std::string& path, const HttpHead& head, RequestStream& stream,
                       bool certified, HttpRequest& request);
  // Returns null if no API has the path.
  const HttpForm* FormOf(const std::string& path) const;
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
  const bool on_loopback_;  // it listens on this machine alone
  const std::vector<std::string> cors_origins_;
  std::vector<Page> pages_;
  std::atomic<int> bounded_ = 0;  // under way
};

}  // namespace linserve
