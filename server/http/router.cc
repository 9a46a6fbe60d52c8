#include "http/router.h"

#include <iterator>
#include <optional>
#include <utility>

#include "http/answers.h"
#include "http/content.h"
#include "http/framing/grammar.h"
#include "http/status_page.h"

namespace linserve {
namespace {

// The status page is one file and asks only us.
constexpr const char* kPagePolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

// Counts one of the requests of which so many may be under way at once.
class Admission {
 public:
  Admission(std::atomic<int>& count, int most) : count_(count), ok_(++count <= most) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission() { --count_; }
  bool ok() const { return ok_; }

 private:
  std::atomic<int>& count_;
  const bool ok_;
};

HttpReply RefuseUncertified() {
  HttpReply reply = RefusalReply(401, "this server expects a client certificate");
  reply.last = true;
  return reply;
}

// The page holds nothing yet: what it shows, it asks for by itself, with its reader's token.
HttpReply StatusPage() {
  return {.content_type = "text/html; charset=utf-8",
          .body = std::string(kStatusPage),
          .headers = {{"Vary", "Accept"},
                      {"Cache-Control", "no-store"},
                      {"Content-Security-Policy", kPagePolicy},
                      {"Referrer-Policy", "no-referrer"},
                      {"X-Content-Type-Options", "nosniff"}}};
}

}  // namespace

Router::Router(HttpHandlers handlers, size_t max_body_bytes, int connections, bool mutual)
    : handlers_(std::move(handlers)),
      max_body_bytes_(max_body_bytes),
      most_bounded_(connections - connections / 8),
      mutual_(mutual) {
  AddHealth();
  if (handlers_.metrics) {
    const auto metrics = [this](const HttpRequest& request) {
      return GuardedPage(request, "text/plain; version=0.0.4; charset=utf-8", handlers_.metrics);
    };
    AddPage("/metrics", metrics, /*health=*/false);
  }
  if (handlers_.status_json) AddStatus();
  for (const HttpRoute& route : handlers_.routes) {
    pages_.push_back(
        {.route = route, .pattern = std::regex(route.pattern), .health = false, .bounded = true});
  }
}

HttpReply Router::Answer(const HttpHead& head, RequestStream& stream, bool certified,
                         HttpRequest& request) {
  const std::string path = PathOf(head.target);
  const std::string method = head.method == "POST" ? "POST" : "GET";
  const Page* of_path = nullptr;
  for (const Page& page : pages_) {
    std::smatch match;
    if (!std::regex_match(path, match, page.pattern)) continue;
    of_path = &page;
    if (page.route.method != method) continue;
    request.captures.assign(std::next(match.begin()), match.end());
    break;
  }
  if (mutual_ && !certified && (of_path == nullptr || !of_path->health)) return RefuseUncertified();
  if (of_path == nullptr) return RefusalReply(404, "no such page");
  if (of_path->route.method != method) {
    return RefuseMethod(of_path->route.method == "POST" ? "POST" : "GET, HEAD");
  }
  if (!of_path->bounded) return AnswerPage(*of_path, head, stream, request);
  const Admission admission(bounded_, most_bounded_);
  if (!admission.ok()) {
    return BusyReply("too many requests at once over HTTP; try again, or use gRPC");
  }
  return AnswerPage(*of_path, head, stream, request);
}

HttpReply Router::AnswerPage(const Page& page, const HttpHead& head, RequestStream& stream,
                             HttpRequest& request) const {
  if (page.route.method != "POST") return page.route.handler(request);
  // The gate holds room for the body until the request is answered.
  const HttpGate gate = page.route.gate ? page.route.gate(request) : nullptr;
  auto refusal = ReadContent(head, stream, max_body_bytes_, gate, request);
  return refusal ? *std::move(refusal) : page.route.handler(request);
}

HttpReply Router::GuardedPage(const HttpRequest& request, const char* type,
                              const std::function<std::string()>& text) const {
  const absl::Status status = handlers_.authorize ? handlers_.authorize(request) : absl::OkStatus();
  if (status.ok()) return {.content_type = type, .body = text()};
  const bool unknown = absl::IsUnauthenticated(status);
  HttpReply reply = TextReply(unknown ? 401 : 403, std::string(status.message()));
  if (unknown) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

void Router::AddStatus() {
  const auto status = [this](const HttpRequest& request) {
    if (request.Header("accept").find("text/html") != std::string::npos) return StatusPage();
    HttpReply reply = GuardedPage(request, "application/json", handlers_.status_json);
    reply.headers.emplace_back("Vary", "Accept");
    return reply;
  };
  AddPage("/", status, /*health=*/false);
}

void Router::AddHealth() {
  const auto live = [this](const HttpRequest&) {
    return HealthReply(handlers_.live() ? absl::OkStatus()
                                        : absl::UnavailableError("the server is stuck"));
  };
  const auto ready = [this](const HttpRequest&) { return HealthReply(handlers_.ready()); };
  for (const char* path : {"/livez", "/v2/health/live"}) AddPage(path, live, /*health=*/true);
  for (const char* path : {"/readyz", "/v2/health/ready"}) AddPage(path, ready, /*health=*/true);
  // text-embeddings-inference's probes are for readiness, and told of it in its words.
  const auto healthy = [this](const HttpRequest&) {
    if (handlers_.ready().ok()) return TextReply(200, "ok");
    return HttpReply{.status = 503, .body = R"({"error":"unhealthy","error_type":"Unhealthy"})"};
  };
  for (const char* path : {"/health", "/ping"}) AddPage(path, healthy, /*health=*/true);
  if (!handlers_.status_json) AddPage("/", healthy, /*health=*/true);
}

void Router::AddPage(const std::string& path, const HttpHandler& handler, bool health) {
  pages_.push_back({.route = {"GET", path, handler},
                    .pattern = std::regex(path),
                    .health = health,
                    .bounded = false});
}

}  // namespace linserve
