#include "http/router.h"

#include <algorithm>
#include <array>
#include <utility>

#include "http/answers.h"
#include "http/status_page.h"

namespace linserve {
namespace {

// The other threads are left to probes and scrapes.
constexpr int kMostRouteRequests = 896;

// For anybody, whatever else is guarded.
constexpr std::array kLive = {"/livez", "/v2/health/live"};
constexpr std::array kReady = {"/readyz", "/v2/health/ready"};

// The status page is one file and asks only us.
constexpr const char* kPagePolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

// One of the requests to routes that may be under way at once.
class Admission {
 public:
  explicit Admission(std::atomic<int>& count) : count_(count), ok_(++count <= kMostRouteRequests) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission() { --count_; }
  bool ok() const { return ok_; }

 private:
  std::atomic<int>& count_;
  const bool ok_;
};

void AnswerMethod(httplib::Response& response, const std::string& allowed) {
  response.set_header("Allow", allowed);
  AnswerError(response, 405, "this path expects " + allowed);
}

bool IsHealth(const std::string& path) {
  const auto is_path = [&](const char* health) { return path == health; };
  return std::any_of(kLive.begin(), kLive.end(), is_path) ||
         std::any_of(kReady.begin(), kReady.end(), is_path);
}

// With an authority, who shows no certificate may ask for health, and for nothing else.
httplib::Server::HandlerResponse RequireCertificate(const httplib::Request& request,
                                                    httplib::Response& response) {
  if (IsHealth(request.path) || HasCertificate(*request.ssl)) {
    return httplib::Server::HandlerResponse::Unhandled;
  }
  response.set_header("Connection", "close");  // what it sends is not read
  AnswerError(response, 401, "this server expects a client certificate");
  return httplib::Server::HandlerResponse::Handled;
}

}  // namespace

Router::Router(HttpHandlers handlers, size_t max_body_bytes, bool mutual)
    : handlers_(std::move(handlers)), max_body_bytes_(max_body_bytes) {
  set_payload_max_length(max_body_bytes);
  if (mutual) set_pre_routing_handler(RequireCertificate);
  AddHealth();
  if (handlers_.metrics) {
    Get("/metrics", [this](const httplib::Request& request, httplib::Response& response) {
      AnswerPage(request, response, "text/plain; version=0.0.4; charset=utf-8", handlers_.metrics);
    });
  }
  if (handlers_.status_json) AddStatus();
  for (const HttpRoute& route : handlers_.routes) AddRoute(route);
  AddRefusals();
  set_post_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (request.response_handler) request.response_handler(response);
  });
}

void Router::AnswerPage(const httplib::Request& request, httplib::Response& response,
                        const char* type, const std::function<std::string()>& text) const {
  const absl::Status status =
      handlers_.authorize ? handlers_.authorize(Converted(request, "")) : absl::OkStatus();
  if (status.ok()) return response.set_content(text(), type);
  const bool unknown = absl::IsUnauthenticated(status);
  if (unknown) response.set_header("WWW-Authenticate", "Bearer");
  AnswerText(response, unknown ? 401 : 403, std::string(status.message()));
}

void Router::AddStatus() {
  Get("/", [this](const httplib::Request& request, httplib::Response& response) {
    response.set_header("Vary", "Accept");
    if (request.get_header_value("Accept").find("text/html") == std::string::npos) {
      return AnswerPage(request, response, "application/json", handlers_.status_json);
    }
    // It holds nothing yet: what it shows, it asks for by itself, with its reader's token.
    response.set_header("Cache-Control", "no-store");
    response.set_header("Content-Security-Policy", kPagePolicy);
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_content(kStatusPage.data(), kStatusPage.size(), "text/html; charset=utf-8");
  });
}

void Router::AddHealth() {
  using httplib::Request;
  using httplib::Response;
  for (const char* path : kLive) {
    Get(path, [this](const Request&, Response& response) {
      AnswerHealth(response, handlers_.live() ? absl::OkStatus()
                                              : absl::UnavailableError("the server is stuck"));
    });
  }
  for (const char* path : kReady) {
    Get(path,
        [this](const Request&, Response& response) { AnswerHealth(response, handlers_.ready()); });
  }
}

void Router::AddRoute(const HttpRoute& route) {
  using httplib::Request;
  using httplib::Response;
  if (route.method != "POST") {
    Get(route.pattern, [this, &route](const Request& request, Response& response) {
      const Admission admission(route_requests_);
      if (!admission.ok()) return AnswerBusy(response);
      AnswerRoute(route, request, "", response);
    });
    return;
  }
  Post(route.pattern, [this, &route](const Request& request, Response& response,
                                     const httplib::ContentReader& read) {
    const Admission admission(route_requests_);
    if (!admission.ok()) return AnswerBusy(response);
    const HttpGate gate = route.gate ? route.gate(Converted(request, "")) : nullptr;
    std::string body;
    if (ReadBody(request, read, max_body_bytes_, gate, body, response)) {
      AnswerRoute(route, request, std::move(body), response);
    }
  });
}

void Router::AddRefusals() {
  using httplib::Request;
  using httplib::Response;
  for (const HttpRoute& route : handlers_.routes) {
    if (route.method == "POST") {
      Get(route.pattern,
          [](const Request&, Response& response) { AnswerMethod(response, "POST"); });
    } else {
      Post(route.pattern,
           [](const Request& request, Response& response, const httplib::ContentReader& read) {
             Overlook(request, read, response);
             AnswerMethod(response, "GET, HEAD");
           });
    }
  }
  // httplib would keep a body that nothing asks for.
  Post(".*", [](const Request& request, Response& response, const httplib::ContentReader& read) {
    Overlook(request, read, response);
    AnswerError(response, 404, "no such page");
  });
  const auto refuse = [](const Request& request, Response& response,
                         const httplib::ContentReader& read) {
    Overlook(request, read, response);
    AnswerMethod(response, "GET, HEAD, POST");
  };
  Put(".*", refuse);
  Patch(".*", refuse);
  Delete(".*", refuse);
  set_error_handler([](const Request&, Response& response) {
    if (!response.body.empty()) return;
    AnswerError(response, response.status, response.status == 404 ? "no such page" : "bad request");
  });
  set_exception_handler(AnswerException);
}

}  // namespace linserve
