#pragma once

#include <httplib.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "http/http_server.h"

namespace linserve {

// What is answered on which path. Of httplib's server it is the part that reads and answers one
// request; connections are ours.
class Router : public httplib::Server {
 public:
  // `mutual`: all but health is for callers with a certificate.
  Router(HttpHandlers handlers, size_t max_body_bytes, bool mutual);

  using httplib::Server::process_request;

 private:
  void AddHealth();
  void AddStatus();
  void AddRoute(const HttpRoute& route);
  // Of what nothing else answers.
  void AddRefusals();
  // A page that `authorize` guards.
  void AnswerPage(const httplib::Request& request, httplib::Response& response, const char* type,
                  const std::function<std::string()>& text) const;

  const HttpHandlers handlers_;
  const size_t max_body_bytes_;          // of a route's request
  std::atomic<int> route_requests_ = 0;  // under way
};

}  // namespace linserve
