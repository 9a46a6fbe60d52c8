#pragma once

#include <gmock/gmock.h>
#include <httplib.h>

#include <future>
#include <memory>
#include <string>

#include "http/http_server.h"
#include "support/http_client.h"
#include "support/wait_until.h"

namespace linserve {

class HttpServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<HttpServer> Start(const HttpLimits& limits = {}) {
    auto server = HttpServer::Start({.port = 0, .limits = limits}, handlers_);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  // Returns the answer to one request on a connection of its own.
  static httplib::Result Get(const HttpServer& server, const std::string& path) {
    return LocalHttpClient(server.port()).Get(path);
  }

  // Asks for the status as a browser does.
  static httplib::Result GetPage(const HttpServer& server) {
    return LocalHttpClient(server.port())
        .Get("/", {{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}});
  }

  // Adds POST /wait, which answers when its caller has left, or after a minute, and says which in
  // `noticed_`.
  HttpRoute WaitUntilAbandoned() {
    return {"POST", "/wait", [this](const HttpRequest& request) {
              begun_.set_value();
              noticed_.set_value(WaitUntil(request.abandoned));
              return HttpReply{};
            }};
  }

  std::promise<void> begun_;
  std::promise<bool> noticed_;
  HttpHandlers handlers_{.metrics =
                             [](MetricsFormat format) {
                               const bool open = format == MetricsFormat::kOpenMetrics;
                               return std::string("linserve_up 1\n") + (open ? "# EOF\n" : "");
                             },
                         .live = [] { return true; },
                         .ready = [] { return absl::OkStatus(); },
                         .status_json = [] { return std::string("{}"); }};
};

}  // namespace linserve
