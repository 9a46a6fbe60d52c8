#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "access/tls.h"
#include "http/http_limits.h"
#include "http/http_message.h"
#include "telemetry/metrics.h"

namespace linserve {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free
  size_t max_body_bytes = 64 << 10;
  TlsFiles tls{};  // none: plain text. With an authority, all but health is for its callers only
  HttpLimits limits{};
  std::vector<std::string> cors_origins{};  // whose pages may call from a browser; "*": all
  std::string flag = "--http-address";      // by which the address can be changed
};

// Says where the pages come from. The functions are called from several threads at once, and should
// be quick: a probe waits for its answer.
struct HttpHandlers {
  std::function<std::string(MetricsFormat)> metrics{};  // none: there is no such page
  std::function<bool()> live;
  std::function<absl::Status()> ready;
  std::function<std::string()> status_json{};  // none: no such page
  // What the status page draws, as JSON: a sample of this moment, and those of the last hour.
  std::function<std::string()> samples_now{};
  std::function<std::string()> samples_hour{};
  // Says whether a caller may see metrics and status; empty: everybody may.
  std::function<absl::Status(const HttpRequest&)> authorize{};
  std::function<void(int status)> replied{};  // called with the status of each reply; may be empty
  std::vector<HttpRoute> routes{};            // further ones
  std::vector<HttpForm> forms{};
};

// Serves metrics, health and a status page for operators, and what else has a route, on a listener
// of its own:
//   /metrics
//   /livez  /v2/health/live      200, or 503 if the process should be restarted
//   /readyz /v2/health/ready     200, or 503 with the reason, as text or as KServe's JSON
//   /                            the status: a page for browsers, JSON for others
//   /samples/now /samples/hour   what the page draws
// A connection occupies a thread while a request of it is handled, and not while it waits for one
// or an answer is on its way. One that is silent or slow is ended: see HttpLimits.
class HttpServer {
 public:
  // Listens when it returns. UNAVAILABLE if the address cannot be had, a port in use included.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                           HttpHandlers handlers);
  // Stops listening, and waits for the requests under way; after two seconds it hangs up on who is
  // left, which ends their requests.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace linserve
