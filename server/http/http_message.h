#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace linserve {

// Is a request as a route's handler sees it.
struct HttpRequest {
  std::vector<std::string> captures;           // of the route's pattern
  std::map<std::string, std::string> headers;  // by their names in lower case
  std::string body;
  std::string peer{};  // the caller's address, without a port
  bool named = false;  // whether the caller gave it the id that it has
  // Says whether the caller has hung up. Thread-safe, also once the request is answered.
  std::function<bool()> abandoned = [] { return false; };

  // Returns "" if there is none.
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
  std::string error{};              // what the body says of an error, for an API with another form
  bool packable = false;            // whether a caller who takes it packed may get it so
  std::shared_ptr<void> sending{};  // held until it is sent
  bool last = false;                // of its connection; what is left of the request is not read
};

// Lets a request's body be read: asked with 0 before it, and then with the size of each piece
// before that is kept. A reply refuses the request. It lives until the request is answered.
using HttpGate = std::function<std::optional<HttpReply>(size_t bytes)>;

// Called from several threads at once; may block.
using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

// Gives all requests and replies of an API what they have in common, those without a route, too.
struct HttpForm {
  std::string prefix;  // of the API's paths; the longest one counts
  std::function<void(HttpRequest& without_body)> begin;
  std::function<void(const HttpRequest&, HttpReply&)> end;
};

struct HttpRoute {
  std::string method;   // "GET" or "POST"
  std::string pattern;  // of the whole path, a regular expression
  HttpHandler handler;
  std::function<HttpGate(const HttpRequest& without_body)> gate{};  // none: any body is read
};

}  // namespace linserve
