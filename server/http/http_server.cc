#include "http/http_server.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

#include "http/answers.h"
#include "http/connections.h"
#include "http/elastic_threads.h"
#include "http/status_page.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

constexpr size_t kMostThreads = 1024;
// The rest is left to probes and scrapes.
constexpr int kMostRouteRequests = 896;
constexpr size_t kMaxRequestsPerConnection = 10000;
constexpr time_t kIdleSeconds = 1;
constexpr time_t kIoSeconds = 5;

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

void SetLimits(httplib::Server& server, size_t max_body_bytes) {
  server.set_payload_max_length(max_body_bytes);
  server.set_keep_alive_max_count(kMaxRequestsPerConnection);
  server.set_keep_alive_timeout(kIdleSeconds);
  server.set_read_timeout(kIoSeconds);
  server.set_write_timeout(kIoSeconds);
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

// What is asked before any of the rest is read.
httplib::Server::HandlerResponse BeforeRouting(const httplib::Request& request,
                                               httplib::Response& response, bool mutual) {
  // httplib repeats an answer for each range, thousands of times. A server may overlook them.
  const_cast<httplib::Request&>(request).ranges.clear();
  if (mutual &&
      RequireCertificate(request, response) == httplib::Server::HandlerResponse::Handled) {
    return httplib::Server::HandlerResponse::Handled;
  }
  if (request.method != "PRI") return httplib::Server::HandlerResponse::Unhandled;
  response.set_header("Connection", "close");
  AnswerError(response, 405, "HTTP/2 is spoken on the gRPC port");
  return httplib::Server::HandlerResponse::Handled;
}

absl::Status CannotListen(const HttpOptions& options, int error) {
  // Only what bind() sets: after a failed look-up of the host, errno says nothing about it.
  const bool known = error == EADDRINUSE || error == EADDRNOTAVAIL || error == EACCES;
  return absl::UnavailableError(
      "cannot listen for HTTP on " + options.host + ":" + std::to_string(options.port) +
      (known ? std::string(": ") + std::strerror(error) : "") + "; choose another address with " +
      options.flag + " HOST:PORT (port 0: any free one)");
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(HttpHandlers of_pages) : handlers(std::move(of_pages)) {}

  absl::Status MakeServer(const TlsFiles& files);
  void AddRoutes();
  void AddHealth();
  // A page that `authorize` guards.
  void AnswerPage(const httplib::Request& request, httplib::Response& response, const char* type,
                  const std::function<std::string()>& text) const;
  void AddStatus();
  // Listens; the port, or -1 with the reason in errno.
  int Bind(const HttpOptions& options);
  void Serve();

  HttpHandlers handlers;
  size_t max_body_bytes = 0;            // of a route's request
  std::atomic<int> route_requests = 0;  // under way
  std::unique_ptr<ReloadingTls> tls;    // outlives the server, which calls it
  std::unique_ptr<httplib::Server> server;
  int port = 0;
  socket_t socket = INVALID_SOCKET;
  std::latch running{1};
  std::thread thread;
  std::future<void> ended;  // of the thread
};

void HttpServer::Impl::AnswerPage(const httplib::Request& request, httplib::Response& response,
                                  const char* type,
                                  const std::function<std::string()>& text) const {
  const absl::Status status =
      handlers.authorize ? handlers.authorize(Converted(request, "")) : absl::OkStatus();
  if (status.ok()) return response.set_content(text(), type);
  const bool unknown = absl::IsUnauthenticated(status);
  if (unknown) response.set_header("WWW-Authenticate", "Bearer");
  AnswerText(response, unknown ? 401 : 403, std::string(status.message()));
}

void HttpServer::Impl::AddStatus() {
  server->Get("/", [this](const httplib::Request& request, httplib::Response& response) {
    response.set_header("Vary", "Accept");
    if (request.get_header_value("Accept").find("text/html") == std::string::npos) {
      return AnswerPage(request, response, "application/json", handlers.status_json);
    }
    // It holds nothing yet: what it shows, it asks for by itself, with its reader's token.
    response.set_header("Cache-Control", "no-store");
    response.set_header("Content-Security-Policy", kPagePolicy);
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_content(kStatusPage.data(), kStatusPage.size(), "text/html; charset=utf-8");
  });
}

void HttpServer::Impl::AddHealth() {
  using httplib::Request;
  using httplib::Response;
  for (const char* path : kLive) {
    server->Get(path, [this](const Request&, Response& response) {
      AnswerHealth(response, handlers.live() ? absl::OkStatus()
                                             : absl::UnavailableError("the server is stuck"));
    });
  }
  for (const char* path : kReady) {
    server->Get(path, [this](const Request&, Response& response) {
      AnswerHealth(response, handlers.ready());
    });
  }
}

void HttpServer::Impl::AddRoutes() {
  using httplib::Request;
  using httplib::Response;
  AddHealth();
  if (handlers.metrics) {
    server->Get("/metrics", [this](const Request& request, Response& response) {
      AnswerPage(request, response, "text/plain; version=0.0.4; charset=utf-8", handlers.metrics);
    });
  }
  if (handlers.status_json) {
    AddStatus();
  }
  for (const HttpRoute& route : handlers.routes) {
    if (route.method == "POST") {
      server->Post(route.pattern, [this, &route](const Request& request, Response& response,
                                                 const httplib::ContentReader& read) {
        const Admission admission(route_requests);
        if (!admission.ok()) return AnswerBusy(response);
        const HttpGate gate = route.gate ? route.gate(Converted(request, "")) : nullptr;
        std::string body;
        if (ReadBody(request, read, max_body_bytes, gate, body, response))
          AnswerRoute(route, request, std::move(body), response);
      });
    } else {
      server->Get(route.pattern, [this, &route](const Request& request, Response& response) {
        const Admission admission(route_requests);
        if (!admission.ok()) return AnswerBusy(response);
        AnswerRoute(route, request, "", response);
      });
    }
  }
  // httplib would keep a body that nothing asks for.
  server->Post(".*",
               [](const Request& request, Response& response, const httplib::ContentReader& read) {
                 Overlook(request, read, response);
                 AnswerError(response, 404, "no such page");
               });
  const auto refuse = [](const Request& request, Response& response,
                         const httplib::ContentReader& read) {
    Overlook(request, read, response);
    response.set_header("Allow", "GET, HEAD, POST");
    AnswerError(response, 405, "expected GET, HEAD or POST");
  };
  server->Put(".*", refuse);
  server->Patch(".*", refuse);
  server->Delete(".*", refuse);
  server->set_error_handler([](const Request&, Response& response) {
    if (!response.body.empty()) return;
    AnswerError(response, response.status, response.status == 404 ? "no such page" : "bad request");
  });
  server->set_exception_handler(AnswerException);
}

absl::Status HttpServer::Impl::MakeServer(const TlsFiles& files) {
  if (!files.enabled()) {
    server = std::make_unique<httplib::Server>();
    return absl::OkStatus();
  }
  auto opened = ReloadingTls::Open(files);
  if (!opened.ok()) return opened.status();
  tls = *std::move(opened);
  server = std::make_unique<httplib::SSLServer>([this](SSL_CTX& context) {
    tls->Install(context);
    return true;
  });
  return absl::OkStatus();
}

int HttpServer::Impl::Bind(const HttpOptions& options) {
  server->set_socket_options([this](socket_t made) {
    // httplib's default is SO_REUSEPORT, with which two servers share a port without an error.
    const int on = 1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    socket = made;
  });
  errno = 0;
  const int bound = options.port == 0 ? server->bind_to_any_port(options.host)
                    : server->bind_to_port(options.host, options.port) ? options.port
                                                                       : -1;
  // httplib's backlog of 5 lets a few callers at once delay a probe by a second.
  if (bound >= 0) listen(socket, SOMAXCONN);
  return bound;
}

void HttpServer::Impl::Serve() {
  // httplib makes its pool once it is running; before that, stop() would have no effect.
  server->new_task_queue = [this] {
    running.count_down();
    return new ElasticThreads(kMostThreads);
  };
  std::packaged_task<void()> serve([this] { server->listen_after_bind(); });
  ended = serve.get_future();
  thread = std::thread(std::move(serve));
  running.wait();
}

HttpServer::HttpServer(HttpHandlers handlers)
    : impl_(std::make_unique<Impl>(std::move(handlers))) {}

HttpServer::~HttpServer() {
  if (impl_->server) impl_->server->stop();
  // What is answered still has to be written.
  constexpr std::chrono::seconds kLastWrites(2);
  while (impl_->ended.valid() &&
         impl_->ended.wait_for(kLastWrites) == std::future_status::timeout) {
    HangUp(impl_->port);  // on who sends a byte now and then
  }
  if (impl_->thread.joinable()) impl_->thread.join();
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              HttpHandlers handlers) {
  if (options.port < 0 || options.port > 65535) {
    return absl::InvalidArgumentError("the HTTP port is " + std::to_string(options.port) +
                                      ", expected 0 to 65535");
  }
  std::unique_ptr<HttpServer> http(new HttpServer(std::move(handlers)));
  Impl& impl = *http->impl_;
  if (absl::Status status = impl.MakeServer(options.tls); !status.ok()) return status;
  impl.max_body_bytes = options.max_body_bytes;
  SetLimits(*impl.server, options.max_body_bytes);
  impl.server->set_pre_routing_handler(
      [mutual = options.tls.mutual()](const httplib::Request& request,
                                      httplib::Response& response) {
        return BeforeRouting(request, response, mutual);
      });
  impl.AddRoutes();
  impl.port = impl.Bind(options);
  if (impl.port < 0) return CannotListen(options, errno);
  impl.Serve();
  return http;
}

int HttpServer::port() const { return impl_->port; }

}  // namespace linserve
