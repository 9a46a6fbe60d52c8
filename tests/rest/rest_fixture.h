#pragma once

#include <gmock/gmock.h>
#include <httplib.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "http/http_server.h"
#include "http/raw_connection.h"
#include "rest/calls/rest_call.h"
#include "rest/rest_routes.h"
#include "rest/tei/tei_routes.h"
#include "support/http_client.h"
#include "support/test_server.h"

namespace linserve {

inline constexpr const char* kInfer = "/v2/models/tokens/infer";

inline std::vector<HttpRoute> AllRoutes(ServiceContext& context) {
  std::vector<HttpRoute> routes = RestRoutes(context);
  AddTeiRoutes(context, routes);
  return routes;
}

// Starts a server of the test models, with its HTTP port.
class RestTest : public ::testing::Test {
 protected:
  explicit RestTest(TestServerOptions options = {.model_control = true})
      : server_(std::move(options)) {
    HttpHandlers handlers{.metrics = [](MetricsFormat) { return std::string(); },
                          .live = [] { return true; },
                          .ready = [] { return absl::OkStatus(); },
                          .status_json = [] { return std::string(); },
                          .routes = AllRoutes(server_.grpc().context()),
                          .forms = RestForms()};
    AddTeiForms(handlers.forms);
    http_ = *HttpServer::Start({.port = 0, .max_body_bytes = 1 << 20}, std::move(handlers));
  }

  struct Reply {
    int status = 0;
    httplib::Headers headers;
    std::string body;
    nlohmann::json parsed;  // the body, if it is JSON
  };

  static Reply Of(const httplib::Result& result) {
    EXPECT_TRUE(result) << httplib::to_string(result.error());
    if (!result) return {};
    return {result->status, result->headers, result->body,
            nlohmann::json::parse(result->body, nullptr, /*allow_exceptions=*/false)};
  }

  Reply Get(const std::string& path) const { return Of(LocalHttpClient(http_->port()).Get(path)); }
  Reply Post(const std::string& path, const std::string& body,
             const httplib::Headers& headers = {}) const {
    return Of(LocalHttpClient(http_->port()).Post(path, headers, body, "application/json"));
  }

  // Makes a request for the rows of tokens 5, 6 and 7.
  static nlohmann::json ThreeTokens() {
    return {{"inputs",
             {{{"name", "x"}, {"datatype", "INT64"}, {"shape", {1, 3}}, {"data", {5, 6, 7}}}}}};
  }

  static void SendThreeTokens(RawConnection& caller) {
    const std::string body = ThreeTokens().dump();
    caller.Send("POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  TestServer server_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace linserve
