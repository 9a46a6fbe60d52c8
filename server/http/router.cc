#include "http/router.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "core/system/loopback.h"
#include "http/answers.h"
#include "http/content.h"
#include "http/cors.h"
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
class Underway {
 public:
  Underway(std::atomic<int>& count, int most) : count_(count), ok_(++count <= most) {}
  Underway(const Underway&) = delete;
  Underway& operator=(const Underway&) = delete;
  ~Underway() { --count_; }
  bool ok() const { return ok_; }

 private:
  std::atomic<int>& count_;
  const bool ok_;
};

// Returns the path of a page, which may be asked for with a slash at its end, too, and with several
// at its beginning, as clients do whose base URL ends with one.
std::string PagePath(const HttpHead& head) {
  std::string path = PathOf(head.target);
  while (path.starts_with("//")) path.erase(0, 1);
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// A path may hold any bytes.
std::unique_ptr<const RE2> PatternOf(const std::string& pattern) {
  return std::make_unique<const RE2>(pattern, RE2::Latin1);
}

// Returns what the groups of a pattern match, "" for those that match nothing; nullopt if the path
// is another.
std::optional<std::vector<std::string>> Match(const std::string& path, const RE2& pattern) {
  const auto groups = static_cast<size_t>(pattern.NumberOfCapturingGroups());
  std::vector<std::string> captures(groups);
  std::vector<RE2::Arg> arguments;
  std::vector<const RE2::Arg*> pointers;
  arguments.reserve(groups);
  for (std::string& capture : captures) pointers.push_back(&arguments.emplace_back(&capture));
  if (!RE2::FullMatchN(path, pattern, pointers.data(), static_cast<int>(groups))) {
    return std::nullopt;
  }
  return captures;
}

// Returns whether a caller wants OpenMetrics, and at least as much as the text format.
bool WantsOpenMetrics(const std::string& accepted) {
  const std::vector<std::string> wanted = ElementsOf(accepted);
  const double open = WeightOf(wanted, "application/openmetrics-text").value_or(0);
  return open > 0 && open >= WeightOf(wanted, "text/plain").value_or(0);
}

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
                      {"X-Content-Type-Options", "nosniff"}},
          .packable = true};
}

}  // namespace

Router::Router(HttpHandlers handlers, const HttpOptions& options)
    : handlers_(std::move(handlers)),
      max_body_bytes_(options.max_body_bytes),
      most_bounded_(options.limits.threads - options.limits.threads / 8),
      mutual_(options.tls.mutual()),
      on_loopback_(IsLoopback(options.host)),
      cors_origins_(options.cors_origins) {
  AddHealth();
  if (handlers_.metrics) {
    const auto metrics = [this](const HttpRequest& request) {
      const bool open = WantsOpenMetrics(request.Header("accept"));
      HttpReply reply = GuardedPage(
          request,
          open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8",
          [&] {
            return handlers_.metrics(open ? MetricsFormat::kOpenMetrics : MetricsFormat::kText);
          });
      reply.headers.emplace_back("Vary", "Accept");
      return reply;
    };
    AddPage("/metrics", metrics, /*health=*/false);
  }
  if (handlers_.status_json) AddStatus();
  for (const HttpRoute& route : handlers_.routes) {
    pages_.push_back(
        {.route = route, .pattern = PatternOf(route.pattern), .health = false, .bounded = true});
  }
}

HttpReply Router::Answer(const HttpHead& head, RequestStream& stream, bool certified,
                         HttpRequest& request) {
  const std::string path = PagePath(head);
  if (const HttpForm* form = FormOf(path)) form->begin(request);
  return AnswerPath(path, head, stream, certified, request);
}

void Router::Finish(const HttpHead& head, const HttpRequest& request, HttpReply& reply) const {
  AllowOrigin(cors_origins_, request, reply);
  if (const HttpForm* form = FormOf(PagePath(head))) form->end(request, reply);
  PackContent(request, reply);
}

HttpReply Router::AnswerPath(const std::string& path, const HttpHead& head, RequestStream& stream,
                             bool certified, HttpRequest& request) {
  const std::string method = head.method == "HEAD" ? "GET" : head.method;
  const Page* of_path = nullptr;
  std::string allowed;  // methods of the path
  for (const Page& page : pages_) {
    std::optional<std::vector<std::string>> captures = Match(path, *page.pattern);
    if (!captures) continue;
    const std::string takes = page.route.method == "GET" ? "GET, HEAD, " : page.route.method + ", ";
    if (allowed.find(takes) == std::string::npos) allowed += takes;
    if (of_path != nullptr && of_path->route.method == method) continue;
    of_path = &page;
    request.captures = *std::move(captures);
  }
  if (mutual_ && !certified && (of_path == nullptr || !of_path->health)) return RefuseUncertified();
  if (of_path == nullptr) return RefusalReply(404, "no such page");
  allowed += "OPTIONS";
  if (method == "OPTIONS") return {.body = "", .headers = {{"Allow", allowed}}};
  if (of_path->route.method != method) return RefuseMethod(allowed);
  if (method == "POST" && !MayCall(cors_origins_, on_loopback_, request)) {
    return RefusalReply(403,
                        "pages of this origin may not call this server: see http_cors_origins");
  }
  if (!of_path->bounded) return AnswerPage(*of_path, head, stream, request);
  const Underway request_underway(bounded_, most_bounded_);
  if (!request_underway.ok()) {
    return BusyReply("too many requests at once over HTTP; try again, or use gRPC");
  }
  return AnswerPage(*of_path, head, stream, request);
}

const HttpForm* Router::FormOf(const std::string& path) const {
  const HttpForm* found = nullptr;
  for (const HttpForm& form : handlers_.forms) {
    const bool longer = found == nullptr || form.prefix.size() > found->prefix.size();
    if (longer && path.starts_with(form.prefix)) found = &form;
  }
  return found;
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
  if (status.ok()) return {.content_type = type, .body = text(), .packable = true};
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
    // Who asks for no form of it may be a load balancer, or a probe of text-embeddings-inference.
    const bool reads = request.Header("accept").find("json") != std::string::npos;
    if (!reads && !handlers_.ready().ok()) reply.status = 503;
    return reply;
  };
  AddPage("/", status, /*health=*/false);
  const auto add = [this](const char* path, const std::function<std::string()>& samples) {
    if (!samples) return;
    AddPage(
        path,
        [this, &samples](const HttpRequest& request) {
          return GuardedPage(request, "application/json", samples);
        },
        /*health=*/false);
  };
  add("/samples/now", handlers_.samples_now);
  add("/samples/hour", handlers_.samples_hour);
}

void Router::AddHealth() {
  const auto live = [this] {
    return handlers_.live() ? absl::OkStatus() : absl::UnavailableError("the server is stuck");
  };
  const auto add = [this](const std::string& path, const HttpHandler& page) {
    AddPage(path, page, /*health=*/true);
  };
  add("/livez", [live](const HttpRequest&) { return HealthReply(live()); });
  add("/v2/health/live", [live](const HttpRequest&) { return HealthReply(live(), "live"); });
  add("/readyz", [this](const HttpRequest&) { return HealthReply(handlers_.ready()); });
  add("/v2/health/ready",
      [this](const HttpRequest&) { return HealthReply(handlers_.ready(), "ready"); });
  // text-embeddings-inference's probes are for readiness, and told of it in its words.
  const auto healthy = [this](const HttpRequest&) {
    if (handlers_.ready().ok()) return TextReply(200, "ok");
    return HttpReply{.status = 503, .body = R"({"error":"unhealthy","error_type":"Unhealthy"})"};
  };
  for (const char* path : {"/health", "/ping"}) add(path, healthy);
  if (!handlers_.status_json) add("/", healthy);
}

void Router::AddPage(const std::string& path, const HttpHandler& handler, bool health) {
  pages_.push_back({.route = {"GET", path, handler},
                    .pattern = PatternOf(path),
                    .health = health,
                    .bounded = false});
}

}  // namespace linserve
