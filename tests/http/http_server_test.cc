#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "http/http_fixture.h"

namespace linserve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(HttpServerTest, ServesMetricsInThePrometheusTextFormat) {
  const auto server = Start();
  const auto answer = Get(*server, "/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "linserve_up 1\n");
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
}

TEST_F(HttpServerTest, ServesOpenMetricsToWhoWantsItAtLeastAsMuch) {
  const auto server = Start();
  httplib::Client client = LocalHttpClient(server->port());
  const std::string open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
  for (const char* accepted :
       {"application/openmetrics-text",
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
        "text/plain, Application/OpenMetrics-Text; version=1.0.0"}) {
    const auto answer = client.Get("/metrics", {{"Accept", accepted}});
    ASSERT_TRUE(answer) << accepted;
    EXPECT_EQ(answer->get_header_value("Content-Type"), open) << accepted;
    EXPECT_EQ(answer->get_header_value("Vary"), "Accept") << accepted;
    EXPECT_EQ(answer->body, "linserve_up 1\n# EOF\n") << accepted;
  }
  for (const char* accepted : {"", "*/*", "text/*", "application/openmetrics-text;q=0",
                               "application/openmetrics-text;q=0.2, text/plain;q=0.3"}) {
    const auto answer = client.Get("/metrics", {{"Accept", accepted}});
    ASSERT_TRUE(answer) << accepted;
    EXPECT_EQ(answer->body, "linserve_up 1\n") << accepted;
  }
}

TEST_F(HttpServerTest, AnswersProbes) {
  const auto server = Start();
  for (const char* path : {"/livez", "/readyz"}) {
    const auto answer = Get(*server, path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 200) << path;
    EXPECT_EQ(answer->body, "ok\n") << path;
  }
}

TEST_F(HttpServerTest, SaysWhyItIsNotReadyWhileItIsAlive) {
  handlers_.ready = [] { return absl::UnavailableError("model m is LOADING"); };
  const auto server = Start();
  for (const char* path : {"/readyz", "/v2/health/ready"}) {
    const auto answer = Get(*server, path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 503) << path;
    EXPECT_THAT(answer->body, HasSubstr("model m is LOADING")) << path;
  }
  const auto live = Get(*server, "/livez");
  ASSERT_TRUE(live);
  EXPECT_EQ(live->status, 200);
}

TEST_F(HttpServerTest, AsksToBeRestartedWhenItIsNotAlive) {
  handlers_.live = [] { return false; };
  const auto server = Start();
  for (const char* path : {"/livez", "/v2/health/live"}) {
    const auto answer = Get(*server, path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 503) << path;
  }
}

TEST_F(HttpServerTest, GivesItsStatusAsJsonAndToBrowsersAsAPage) {
  const std::string status = R"({"model": "<script>&"})";
  handlers_.status_json = [&] { return status; };
  const auto server = Start();
  const auto json = Get(*server, "/");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->status, 200);
  EXPECT_EQ(json->get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(json->body, status);
  const auto page = GetPage(*server);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  EXPECT_THAT(page->body,
              AllOf(HasSubstr("<title>"), HasSubstr("</html>"), Not(HasSubstr(status))));
}

TEST_F(HttpServerTest, GivesWhatThePageDrawsToThoseWhomItLetsIn) {
  handlers_.status_json = [] { return "{}"; };
  handlers_.samples_now = [] { return R"({"now":1})"; };
  handlers_.samples_hour = [] { return R"({"hour":1})"; };
  std::atomic<bool> allowed = true;
  handlers_.authorize = [&](const HttpRequest& /*request*/) {
    return allowed ? absl::OkStatus() : absl::PermissionDeniedError("not for you");
  };
  const auto server = Start();
  for (const auto& [path, body] :
       {std::pair("/samples/now", R"({"now":1})"), std::pair("/samples/hour", R"({"hour":1})")}) {
    allowed = true;
    const auto samples = Get(*server, path);
    ASSERT_TRUE(samples) << path;
    EXPECT_EQ(samples->body, body);
    EXPECT_EQ(samples->get_header_value("Content-Type"), "application/json");
    allowed = false;
    const auto refused = Get(*server, path);
    ASSERT_TRUE(refused) << path;
    EXPECT_EQ(refused->status, 403);
  }
}

TEST_F(HttpServerTest, AnswersAnUnknownPageWithAnErrorInJson) {
  const auto server = Start();
  const auto answer = Get(*server, "/nothing");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, R"({"error":"no such page"})");
  EXPECT_EQ(answer->get_header_value("Content-Type"), "application/json");
}

TEST_F(HttpServerTest, KeepsNothingOfABodyThatNothingAsksFor) {
  const auto server = Start();
  httplib::Client client = LocalHttpClient(server->port());
  client.set_keep_alive(true);
  const std::string body(10'000, 'x');
  EXPECT_EQ(client.Post("/metrics", body, "text/plain")->status, 405);
  EXPECT_EQ(client.Post("/nothing", body, "text/plain")->status, 404);
  EXPECT_EQ(client.Put("/livez", body, "text/plain")->status, 405);
  EXPECT_EQ(client.Delete("/", body, "text/plain")->status, 405);
  EXPECT_EQ(client.Post("/nothing", std::string(1'000'000, 'x'), "text/plain")->status, 404);
  EXPECT_EQ(client.Get("/livez")->status, 200);
}

TEST_F(HttpServerTest, KeepsAFaultOfAPageFromTheCallerAndGoesOn) {
  handlers_.metrics = [](MetricsFormat) -> std::string { throw std::runtime_error("secret"); };
  const auto server = Start();
  const auto answer = Get(*server, "/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 500);
  EXPECT_THAT(answer->body, Not(HasSubstr("secret")));
  EXPECT_FALSE(answer->has_header("EXCEPTION_WHAT"));
  const auto probe = Get(*server, "/livez");
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->status, 200);
}

TEST_F(HttpServerTest, AnswersProbesWhileThreePagesAreStuck) {
  std::latch release(1);
  std::latch stuck(3);
  handlers_.status_json = [&] {
    stuck.count_down();
    release.wait();
    return std::string("{}");
  };
  const auto server = Start();
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] { EXPECT_TRUE(Get(*server, "/")); });
  }
  stuck.wait();

  const auto probe = Get(*server, "/livez");
  release.count_down();
  for (std::thread& caller : callers) caller.join();
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->status, 200);
}

TEST_F(HttpServerTest, AnswersManyCallersAtOnce) {
  std::atomic<int> pages = 0;
  handlers_.metrics = [&](MetricsFormat) { return std::to_string(++pages); };
  const auto server = Start();
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int call = 0; call < 10; ++call) EXPECT_TRUE(Get(*server, "/metrics"));
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(pages, 80);
}

TEST_F(HttpServerTest, ReportsAPortInUseWithItsAddressAndTheRemedy) {
  const auto first = Start();
  const auto second = HttpServer::Start({.port = first->port()}, handlers_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr("127.0.0.1:" + std::to_string(first->port())),
                    HasSubstr("Address already in use"), HasSubstr("--http-address")));
}

TEST_F(HttpServerTest, ReportsAHostThatIsNotItsOwn) {
  const auto server = HttpServer::Start({.host = "256.0.0.1", .port = 0}, handlers_);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("256.0.0.1:0"));
}

TEST_F(HttpServerTest, RefusesAPortThatDoesNotExist) {
  const auto server = HttpServer::Start({.port = 65536}, handlers_);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HttpServerTest, FreesItsPortWhenItStopsThoughAClientKeepsItsConnection) {
  auto server = Start();
  const int port = server->port();
  httplib::Client client = LocalHttpClient(port);
  client.set_keep_alive(true);
  ASSERT_TRUE(client.Get("/livez"));
  server.reset();

  const auto next = HttpServer::Start({.port = port}, handlers_);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(Get(**next, "/livez"));
}

TEST_F(HttpServerTest, PagesAreForThoseWhoMaySeeThem) {
  handlers_.authorize = [](const HttpRequest& request) {
    if (request.Header("authorization").empty()) return absl::UnauthenticatedError("who?");
    return absl::PermissionDeniedError("not you");
  };
  const auto server = Start();
  for (const char* path : {"/metrics", "/"}) {
    const auto answer = Get(*server, path);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 401);
    EXPECT_EQ(answer->get_header_value("WWW-Authenticate"), "Bearer");
    httplib::Client client = LocalHttpClient(server->port());
    const auto known = client.Get(path, {{"Authorization", "Bearer x"}});
    ASSERT_TRUE(known);
    EXPECT_EQ(known->status, 403);
    EXPECT_EQ(known->body, "not you\n");
  }
  EXPECT_EQ(Get(*server, "/livez")->status, 200);
  EXPECT_EQ(GetPage(*server)->status, 200);  // it asks for a token by itself
}

TEST_F(HttpServerTest, PagesMayBeElsewhere) {
  handlers_.metrics = nullptr;
  handlers_.status_json = nullptr;
  const auto server = Start();
  EXPECT_EQ(Get(*server, "/metrics")->status, 404);
  EXPECT_EQ(Get(*server, "/")->body, "ok\n");  // for probes, which may ask for this page
  EXPECT_EQ(Get(*server, "/readyz")->status, 200);
}

}  // namespace
}  // namespace linserve
