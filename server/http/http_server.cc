#include "http/http_server.h"

#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "core/files/descriptor.h"
#include "core/system/endpoint.h"
#include "core/threads/elastic_threads.h"
#include "core/threads/guarded.h"
#include "http/answers.h"
#include "http/connection.h"
#include "http/content.h"
#include "http/listener.h"
#include "http/open_connections.h"
#include "http/request_stream.h"
#include "http/router.h"

namespace linserve {
namespace {

constexpr int kMostRequestsPerConnection = 10000;
// A body cut into chunks of a byte takes six times its size on the way.
constexpr size_t kMostPacking = 8;

using Places = std::counting_semaphore<>;

TimePoint In(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }

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
        router(std::move(handlers), of_server.max_body_bytes, of_server.limits.connections,
               of_server.tls.mutual()) {}
  ~Impl();

  absl::Status OpenTls();
  // Takes connections until the listener is closed.
  void Accept();
  // Waits until another connection may be taken; false if none may any more.
  bool TakePlace();
  void Serve(Connection& connection);
  // Answers the next request; true if another may follow.
  bool ServeRequest(const Connection& connection, const OpenConnections::Entry& entry,
                    RequestStream& stream, bool last);
  HttpReply ReplyTo(HttpHead& head, const Connection& connection,
                    const OpenConnections::Entry& entry, RequestStream& stream);

  const HttpOptions options;
  Router router;
  std::unique_ptr<ReloadingTls> tls;  // outlives the context, which calls it
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls_context{nullptr, SSL_CTX_free};
  std::unique_ptr<Listener> listener;
  std::atomic<bool> ending = false;
  Places places{options.limits.connections};
  OpenConnections connections;
  ElasticThreads threads{static_cast<size_t>(options.limits.connections)};
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

bool HttpServer::Impl::TakePlace() {
  constexpr std::chrono::milliseconds kPause(100);
  while (!ending) {
    if (places.try_acquire_for(kPause)) return true;
  }
  return false;
}

void HttpServer::Impl::Accept() {
  while (TakePlace()) {
    Descriptor accepted(listener->Accept());
    if (accepted.get() < 0) return;
    RunGuarded("the taking of an HTTP connection", [&] {
      // It is given back whatever fails.
      const std::shared_ptr<Places> place(&places, [](Places* of) { of->release(); });
      const auto connection = std::make_shared<Connection>(std::move(accepted));
      threads.Run([this, place, connection] { Serve(*connection); });
    });
  }
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
  std::optional<HttpHead> head = stream.ReadHead();
  HttpReply reply =
      head ? ReplyTo(*head, connection, entry, stream) : RefusalReply(*stream.fault());
  const bool whole = head && !reply.last && stream.SkipBody();
  last = last || !whole || head->last;
  // A request whose body is malformed is none, whatever was found before that was read.
  if (stream.fault() && stream.fault()->status == 400) reply = RefusalReply(*stream.fault());
  const bool sends_body = !head || head->method != "HEAD";
  return stream.Write(ReplyHead(reply, last, options.limits.idle, kMostRequestsPerConnection)) &&
         (!sends_body || stream.Write(reply.body)) && !last;
}

HttpReply HttpServer::Impl::ReplyTo(HttpHead& head, const Connection& connection,
                                    const OpenConnections::Entry& entry, RequestStream& stream) {
  const auto peer = PeerOf(connection.descriptor());
  HttpRequest request{.captures = {},
                      .headers = std::move(head.headers),
                      .body = {},
                      .peer = peer ? peer->Machine() : "",
                      .abandoned = [left = entry.left()] { return left->load(); }};
  const bool certified = connection.tls() != nullptr && HasCertificate(*connection.tls());
  constexpr std::string_view kWork = "the HTTP handler";
  auto reply = Guarded(kWork, [&]() -> absl::StatusOr<HttpReply> {
    HttpReply answer = router.Answer(head, stream, certified, request);
    PackContent(request, answer);
    return answer;
  });
  if (reply.ok()) return *std::move(reply);
  if (absl::IsResourceExhausted(reply.status())) {
    return BusyReply("the server is out of memory; try again");
  }
  ReportFailure(kWork, reply.status());
  return TextReply(500, "internal error: see the server's log");
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              HttpHandlers handlers) {
  if (options.port < 0 || options.port > 65535) {
    return absl::InvalidArgumentError("the HTTP port is " + std::to_string(options.port) +
                                      ", expected 0 to 65535");
  }
  // Who hangs up while OpenSSL or the log writes to him is to end that, and not the process.
  std::signal(SIGPIPE, SIG_IGN);
  auto impl = std::make_unique<Impl>(options, std::move(handlers));
  if (absl::Status status = impl->OpenTls(); !status.ok()) return status;
  auto listener = Listener::Open(options.host, options.port);
  if (!listener.ok()) return CannotListen(options, listener.status());
  impl->listener = *std::move(listener);
  impl->accepting = std::thread([&server = *impl] { server.Accept(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->listener->port(); }

}  // namespace linserve
