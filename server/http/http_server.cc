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
#include "http/listener.h"
#include "http/open_connections.h"
#include "http/request_stream.h"
#include "http/router.h"

namespace linserve {
namespace {

constexpr int kMostRequestsPerConnection = 10000;
// A body cut into chunks of a byte takes six times its size on the way.
constexpr size_t kMostPacking = 8;

using Slots = std::counting_semaphore<>;

TimePoint In(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }

absl::Status CannotListen(const HttpOptions& options, const absl::Status& reason) {
  return absl::UnavailableError("cannot listen for HTTP on " + options.host + ":" +
                                std::to_string(options.port) + ": " +
                                std::string(reason.message()) + "; choose another address with " +
                                options.flag + " HOST:PORT (port 0: any free one)");
}

}  // namespace

struct HttpServer::Impl {
  // Holds a connection that was taken, for as long as it is open.
  struct Client {
    Client(Impl& server, std::shared_ptr<Slots> of_server, Descriptor descriptor)
        : slot(std::move(of_server)),
          connection(std::move(descriptor)),
          stream(connection, server.options.limits, kMostPacking * server.options.max_body_bytes),
          entry(server.connections, connection.descriptor()) {}

    const std::shared_ptr<Slots> slot;       // is given back at the end
    std::shared_ptr<std::atomic<int>> slow;  // counts it, while it is slow to take an answer
    Connection connection;
    RequestStream stream;
    OpenConnections::Entry entry;
    int requests_left = kMostRequestsPerConnection;
  };

  Impl(const HttpOptions& of_server, HttpHandlers handlers)
      : options(of_server), router(std::move(handlers), of_server) {}
  ~Impl();

  absl::Status OpenTls();
  // Takes connections until the listener is closed.
  void Accept();
  // Waits until another connection may be taken; false if none may any more.
  bool TakeSlot();
  // Has the client served on a thread once there is something to do.
  void Await(const std::shared_ptr<Client>& client);
  // Waits for the client on this thread, once there are no other waits.
  RequestStream::Next AwaitLast(Client& client) const;
  // Answers the requests that have come; `in_time` unless what was waited for has not come.
  void Serve(const std::shared_ptr<Client>& client, bool in_time);
  // Answers the next request.
  void ServeRequest(Client& client);
  HttpReply ReplyTo(HttpHead& head, Client& client);

  const HttpOptions options;
  Router router;
  std::unique_ptr<ReloadingTls> tls;  // outlives the context, which calls it
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls_context{nullptr, SSL_CTX_free};
  std::unique_ptr<Listener> listener;
  std::atomic<bool> ending = false;
  Slots slots{options.limits.connections};
  std::atomic<int> slow = 0;
  OpenConnections connections;
  ElasticThreads threads{static_cast<size_t>(options.limits.threads)};
  std::thread accepting;
};

HttpServer::Impl::~Impl() {
  if (!accepting.joinable()) return;
  ending = true;
  listener->Close();
  accepting.join();
  connections.EndWaits();
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
  if (tls_context == nullptr) return absl::ResourceExhaustedError("no memory for TLS");
  tls->Install(*tls_context);
  return absl::OkStatus();
}

bool HttpServer::Impl::TakeSlot() {
  constexpr std::chrono::milliseconds kPause(100);
  // Who was just answered is idle in a moment, and goes before one whose head is slow to come.
  constexpr std::chrono::milliseconds kMoment(20);
  while (!ending) {
    if (slots.try_acquire()) return true;
    using For = OpenConnections::For;
    if (!connections.EndLongestWait(For::kRequest)) {
      if (slots.try_acquire_for(kMoment)) return true;
      for (const For what : {For::kRequest, For::kEnd, For::kHead, For::kAnswer}) {
        if (connections.EndLongestWait(what)) break;
      }
    }
    if (slots.try_acquire_for(kPause)) return true;
  }
  return false;
}

void HttpServer::Impl::Accept() {
  while (true) {
    Descriptor accepted(listener->Accept());
    // Only for a caller who is there another one's wait is ended.
    if (accepted.get() < 0 || !TakeSlot()) return;
    RunGuarded("the taking of an HTTP connection", [&] {
      // It is given back whatever fails.
      const std::shared_ptr<Slots> slot(&slots, [](Slots* of) { of->release(); });
      const auto client = std::make_shared<Client>(*this, slot, std::move(accepted));
      if (!tls || client->connection.Secure(*tls_context)) Await(client);
    });
  }
}

void HttpServer::Impl::Await(const std::shared_ptr<Client>& client) {
  const RequestStream& stream = client->stream;
  // Answers of so many slow readers take memory enough: for another one, the slowest is ended.
  if (stream.waits_for() != OpenConnections::For::kAnswer) {
    client->slow.reset();
  } else if (client->slow == nullptr) {
    if (++slow > options.limits.threads) connections.EndLongestWait(OpenConnections::For::kAnswer);
    client->slow = {&slow, [](std::atomic<int>* count) { --*count; }};
  }
  client->entry.Begin({.what = stream.waits_for(),
                       .events = stream.wanted(),
                       .deadline = stream.deadline(),
                       .wake = [this, client](bool in_time) {
                         threads.Run([this, client, in_time] { Serve(client, in_time); });
                       }});
}

RequestStream::Next HttpServer::Impl::AwaitLast(Client& client) const {
  RequestStream& stream = client.stream;
  return client.connection.Ready(stream.wanted(), stream.deadline()) ? stream.Await()
                                                                     : stream.GiveUp();
}

void HttpServer::Impl::Serve(const std::shared_ptr<Client>& client, bool in_time) {
  using Next = RequestStream::Next;
  using For = OpenConnections::For;
  RequestStream& stream = client->stream;
  Next next = in_time ? stream.Await() : stream.GiveUp();
  while (next != Next::kEnd) {
    if (next == Next::kHead) {
      ServeRequest(*client);
      next = stream.Await();
      // Who has come again is likely to do so once more, and soon: the thread need not change.
      constexpr std::chrono::milliseconds kSoon(5);
      const bool again = client->requests_left < kMostRequestsPerConnection - 1;
      if (next == Next::kMore && stream.waits_for() == For::kRequest && again &&
          client->connection.Ready(stream.wanted(), In(kSoon))) {
        next = stream.Await();
      }
    } else if (!ending) {
      return Await(client);
    } else if (stream.waits_for() == For::kAnswer || stream.waits_for() == For::kEnd) {
      next = AwaitLast(*client);
    } else {
      break;
    }
  }
  client->connection.End();
}

void HttpServer::Impl::ServeRequest(Client& client) {
  RequestStream& stream = client.stream;
  std::optional<HttpHead> head = stream.TakeHead();
  HttpReply reply = head ? ReplyTo(*head, client) : RefusalReply(*stream.fault());
  const bool goes_on = head && !reply.last && stream.SkipBody();
  const bool last = --client.requests_left == 0 || ending || !goes_on || head->last;
  router.Replied(reply);
  std::string text = ReplyHead(reply, last, options.limits.idle, client.requests_left);
  if (head && head->method == "HEAD") reply.body.clear();
  constexpr size_t kCopied = 4 << 10;  // for less than a packet more
  if (reply.body.size() <= kCopied) text += std::exchange(reply.body, {});
  stream.Begin({.head = std::move(text),
                .body = std::move(reply.body),
                .until_sent = std::move(reply.sending)},
               last);
}

HttpReply HttpServer::Impl::ReplyTo(HttpHead& head, Client& client) {
  const Connection& connection = client.connection;
  const auto peer = PeerOf(connection.descriptor());
  HttpRequest request{.captures = {},
                      .headers = std::move(head.headers),
                      .body = {},
                      .peer = peer ? peer->Machine() : "",
                      .abandoned = [left = client.entry.left()] { return left->load(); }};
  const bool certified = connection.tls() != nullptr && HasCertificate(*connection.tls());
  constexpr std::string_view kWork = "the HTTP handler";
  auto reply = Guarded(kWork, [&]() -> absl::StatusOr<HttpReply> {
    HttpReply answer = router.Answer(head, client.stream, certified, request);
    if (!answer.last) client.stream.SkipBody();
    // A request whose body is malformed is none, whatever was found before that was read.
    const std::optional<HttpFault>& fault = client.stream.fault();
    if (fault && fault->status == 400) answer = RefusalReply(*fault);
    router.Finish(head, request, answer);
    return answer;
  });
  if (reply.ok()) return *std::move(reply);
  const bool memory = absl::IsResourceExhausted(reply.status());
  if (!memory) ReportFailure(kWork, reply.status());
  HttpReply failure = memory ? BusyReply("the server is out of memory; try again")
                             : RefusalReply(500, "internal error: see the server's log");
  RunGuarded(kWork, [&] { router.Finish(head, request, failure); });
  return failure;
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
