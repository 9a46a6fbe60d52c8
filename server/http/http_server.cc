#include "http/http_server.h"

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "http/connection.h"
#include "http/elastic_threads.h"
#include "http/listener.h"
#include "http/open_connections.h"
#include "http/request_stream.h"
#include "http/router.h"

namespace linserve {
namespace {

constexpr size_t kMostThreads = 1024;
constexpr int kMostRequestsPerConnection = 10000;
// A body cut into chunks of a byte takes six times its size on the way.
constexpr size_t kMostPacking = 8;

TimePoint In(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }

// What httplib does not come to see.
void Refuse(const HeadFault& fault, httplib::Stream& stream) {
  const std::string body = R"({"error":")" + std::string(fault.text) + R"("})";
  stream.write("HTTP/1.1 " + std::to_string(fault.status) + " " + fault.text +
               "\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body);
}

absl::Status CannotListen(const HttpOptions& options, const absl::Status& reason) {
  return absl::UnavailableError("cannot listen for HTTP on " + options.host + ":" +
                                std::to_string(options.port) + ": " +
                                std::string(reason.message()) + "; choose another address with " +
                                options.flag + " HOST:PORT (port 0: any free one)");
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpOptions& of_server, HttpHandlers handlers)
      : options(of_server),
        router(std::move(handlers), of_server.max_body_bytes, of_server.tls.mutual()) {
    // What callers are told of it.
    router.set_keep_alive_timeout(
        std::chrono::ceil<std::chrono::seconds>(options.limits.idle).count());
    router.set_keep_alive_max_count(kMostRequestsPerConnection);
  }
  ~Impl();

  absl::Status OpenTls();
  void Serve(Connection& connection);
  // True if another request may follow.
  bool ServeRequest(const Connection& connection, const OpenConnections::Entry& entry,
                    RequestStream& stream, bool last);

  const HttpOptions options;
  Router router;
  std::unique_ptr<ReloadingTls> tls;  // outlives the context, which calls it
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls_context{nullptr, SSL_CTX_free};
  std::unique_ptr<Listener> listener;
  std::atomic<bool> ending = false;
  OpenConnections connections;
  ElasticThreads threads{kMostThreads};
  std::thread accepting;
};

HttpServer::Impl::~Impl() {
  if (!accepting.joinable()) return;
  ending = true;
  listener->Close();
  accepting.join();
  // What is answered still has to be written; who sends a byte now and then is not waited for.
  constexpr std::chrono::seconds kLastWrites(2);
  if (!threads.End(In(kLastWrites))) connections.HangUp();
}

absl::Status HttpServer::Impl::OpenTls() {
  if (!options.tls.enabled()) return absl::OkStatus();
  auto opened = ReloadingTls::Open(options.tls);
  if (!opened.ok()) return opened.status();
  tls = *std::move(opened);
  tls_context.reset(SSL_CTX_new(TLS_server_method()));
  tls->Install(*tls_context);
  return absl::OkStatus();
}

void HttpServer::Impl::Serve(Connection& connection) {
  const OpenConnections::Entry entry(connections, connection.descriptor());
  if (ending) return;
  if (tls && !connection.Secure(*tls_context, In(options.limits.patience))) return;
  RequestStream stream(connection, options.limits, kMostPacking * options.max_body_bytes);
  bool goes_on = true;
  for (int left = kMostRequestsPerConnection; goes_on && stream.Await(); --left) {
    goes_on = ServeRequest(connection, entry, stream, left == 1 || ending);
  }
  connection.End(In(goes_on ? std::chrono::milliseconds(0) : options.limits.idle));
}

bool HttpServer::Impl::ServeRequest(const Connection& connection,
                                    const OpenConnections::Entry& entry, RequestStream& stream,
                                    bool last) {
  if (const auto fault = stream.ReadHead()) {
    Refuse(*fault, stream);
    return false;
  }
  bool goes_on = false;  // so it stays if httplib refuses the request, and reads no body
  bool ended = false;
  const bool written = router.process_request(stream, last, ended, [&](httplib::Request& request) {
    request.ssl = connection.tls();
    // httplib has these two for its clients. Ours tell Converted() whether the caller is there, and
    // us how the request is answered.
    request.progress = [left = entry.left()](uint64_t, uint64_t) { return !*left; };
    request.response_handler = [&goes_on](const httplib::Response& answer) {
      goes_on = answer.get_header_value("Connection") != "close";
      return true;
    };
  });
  return written && goes_on && !ended && !stream.failed();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              HttpHandlers handlers) {
  if (options.port < 0 || options.port > 65535) {
    return absl::InvalidArgumentError("the HTTP port is " + std::to_string(options.port) +
                                      ", expected 0 to 65535");
  }
  auto impl = std::make_unique<Impl>(options, std::move(handlers));
  if (absl::Status status = impl->OpenTls(); !status.ok()) return status;
  auto listener = Listener::Open(options.host, options.port);
  if (!listener.ok()) return CannotListen(options, listener.status());
  impl->listener = *std::move(listener);
  impl->accepting = std::thread([&server = *impl] {
    for (int accepted = 0; (accepted = server.listener->Accept()) >= 0;) {
      server.threads.Run([&server, connection = std::make_shared<Connection>(accepted)] {
        server.Serve(*connection);
      });
    }
  });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->listener->port(); }

}  // namespace linserve
