#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace linserve {

// A request as a route's handler sees it.
struct HttpRequest {
  std::vector<std::string> captures;           // of the route's pattern
  std::map<std::string, std::string> headers;  // by their names in lower case
  std::string body;
  std::string peer{};  // the caller's address, without a port

  // "" if there is none.
  std::string Header(const std::string& lower_case_name) const {
    const auto found = headers.find(lower_case_name);
    return found == headers.end() ? "" : found->second;
  }
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};
};

// Called from several threads at once; may block.
using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

struct HttpRoute {
  std::string method;   // "GET" or "POST"
  std::string pattern;  // of the whole path, a regular expression
  HttpHandler handler;
};

}  // namespace linserve
