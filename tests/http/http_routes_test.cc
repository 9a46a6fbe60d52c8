#include <string>

#include "http/http_fixture.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class HttpRoutesTest : public HttpServerTest {
 protected:
  HttpRoutesTest() {
    const auto echo = [](const HttpRequest& request) { return HttpReply{.body = request.body}; };
    handlers_.routes = {{"POST", "/api/both", echo}, {"GET", "/api/both", echo}};
  }

  std::unique_ptr<HttpServer> StartFor(const std::vector<std::string>& origins) {
    return *HttpServer::Start({.port = 0, .cors_origins = origins}, handlers_);
  }

  // What a browser asks before it lets a page of the origin call a path.
  static httplib::Result AskFor(const HttpServer& server, const std::string& origin) {
    return LocalHttpClient(server.port())
        .Options("/api/both", {{"Origin", origin},
                               {"Access-Control-Request-Method", "POST"},
                               {"Access-Control-Request-Headers", "authorization,content-type"}});
  }
};

TEST_F(HttpRoutesTest, HealthIsSaidInTheFormOfTheOpenInferenceProtocolToo) {
  auto server = Start();
  EXPECT_EQ(Get(*server, "/v2/health/live")->body, R"({"live":true})");
  EXPECT_EQ(Get(*server, "/v2/health/ready")->body, R"({"ready":true})");
  handlers_.live = [] { return false; };
  handlers_.ready = [] { return absl::UnavailableError("loading"); };
  server = Start();
  EXPECT_EQ(Get(*server, "/v2/health/live")->body,
            R"({"live":false,"error":"the server is stuck"})");
  EXPECT_EQ(Get(*server, "/v2/health/ready")->body, R"({"ready":false,"error":"loading"})");
}

TEST_F(HttpRoutesTest, AlsoHaveASlashAtTheirEndAndSeveralAtTheirBeginning) {
  const auto server = Start();
  for (const char* path : {"/livez/", "/metrics/", "/api/both/", "/", "//livez"}) {
    EXPECT_EQ(Get(*server, path)->status, 200) << path;
  }
  EXPECT_EQ(Get(*server, "/livez//")->status, 404);
}

TEST_F(HttpRoutesTest, SayWhichMethodsAPathTakes) {
  const auto server = Start();
  httplib::Client client = LocalHttpClient(server->port());
  const auto refused = client.Delete("/api/both");
  EXPECT_EQ(refused->status, 405);
  EXPECT_EQ(refused->get_header_value("Allow"), "POST, GET, HEAD, OPTIONS");
  EXPECT_THAT(refused->body, HasSubstr("this path takes POST, GET, HEAD, OPTIONS"));
  EXPECT_EQ(client.Options("/metrics")->get_header_value("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(client.Options("/nothing")->status, 404);
}

TEST_F(HttpRoutesTest, AreNotForPagesOfOtherOriginsUnlessTheOptionSaysSo) {
  const auto asked = AskFor(*Start(), "https://a.example");
  EXPECT_EQ(asked->status, 200);
  EXPECT_FALSE(asked->has_header("Access-Control-Allow-Origin"));
}

TEST_F(HttpRoutesTest, AreForPagesOfTheOriginsThatTheOptionNames) {
  const auto server = StartFor({"https://a.example", "http://b.example:3000"});
  const auto asked = AskFor(*server, "http://b.example:3000");
  EXPECT_EQ(asked->get_header_value("Access-Control-Allow-Origin"), "http://b.example:3000");
  EXPECT_EQ(asked->get_header_value("Access-Control-Allow-Headers"), "authorization,content-type");
  EXPECT_THAT(asked->get_header_value("Access-Control-Allow-Methods"), HasSubstr("POST"));
  EXPECT_EQ(asked->get_header_value("Vary"), "Origin");
  const httplib::Headers of_page = {{"Origin", "https://a.example"}};
  for (const char* path : {"/api/both", "/nothing"}) {
    const auto called = LocalHttpClient(server->port()).Get(path, of_page);
    EXPECT_EQ(called->get_header_value("Access-Control-Allow-Origin"), "https://a.example") << path;
  }
  const auto other = AskFor(*server, "https://c.example");
  EXPECT_FALSE(other->has_header("Access-Control-Allow-Origin"));
  EXPECT_FALSE(other->has_header("Access-Control-Allow-Methods"));
  EXPECT_EQ(other->get_header_value("Vary"), "Origin");
}

TEST_F(HttpRoutesTest, AreNotCalledByPagesThatMayNot) {
  const auto status = [](const HttpServer& server, const std::string& origin) {
    return LocalHttpClient(server.port())
        .Post("/api/both", {{"Origin", origin}}, "", "text/plain")
        ->status;
  };
  const auto server = StartFor({"https://a.example"});
  for (const char* origin : {"https://b.example", "null", "https://a.example.b.example"}) {
    EXPECT_EQ(status(*server, origin), 403) << origin;
  }
  EXPECT_EQ(status(*server, "https://a.example"), 200);
  const std::string host = "127.0.0.1:" + std::to_string(server->port());
  EXPECT_EQ(status(*server, "http://" + host), 200);
  EXPECT_EQ(status(*server, "https://" + host), 200);
  EXPECT_EQ(status(*StartFor({"*"}), "https://b.example"), 200);
}

TEST_F(HttpRoutesTest, AreNotCalledByPagesWhoseNameWasMadeToLeadToThisMachine) {
  const auto server = Start();
  const auto status = [&](const std::string& host) {
    const httplib::Headers headers = {
        {"Host", host}, {"Origin", "http://" + host}, {"Sec-Fetch-Site", "same-origin"}};
    return LocalHttpClient(server->port()).Post("/api/both", headers, "", "text/plain")->status;
  };
  const std::string port = ":" + std::to_string(server->port());
  EXPECT_EQ(status("evil.example" + port), 403);
  EXPECT_EQ(status("127.0.0.1.evil.example" + port), 403);
  EXPECT_EQ(status("unix:80"), 403);
  for (const char* own : {"127.0.0.1", "localhost", "LocalHost.", "[::1]"}) {
    EXPECT_EQ(status(own + port), 200) << own;
    EXPECT_EQ(status(own), 200) << own;
  }
}

TEST_F(HttpRoutesTest, AreForPagesOfAllOriginsIfTheOptionSaysSo) {
  const auto asked = AskFor(*StartFor({"*"}), "https://a.example");
  EXPECT_EQ(asked->get_header_value("Access-Control-Allow-Origin"), "*");
  EXPECT_FALSE(asked->has_header("Vary"));
}

TEST_F(HttpRoutesTest, OfAnApiHaveItsForm) {
  handlers_.forms = {{"/api/", [](HttpRequest& request) { request.headers["x-begun"] = "yes"; },
                      [](const HttpRequest& request, HttpReply& reply) {
                        reply.headers.emplace_back("X-Begun", request.Header("x-begun"));
                        if (!reply.error.empty()) reply.body = "fault: " + reply.error;
                      }}};
  const auto server = Start();
  const auto called = Get(*server, "/api/both");
  EXPECT_EQ(called->status, 200);
  EXPECT_EQ(called->get_header_value("X-Begun"), "yes");
  EXPECT_EQ(Get(*server, "/api/nothing")->body, "fault: no such page");
  EXPECT_THAT(LocalHttpClient(server->port()).Put("/api/both")->body,
              HasSubstr("fault: this path"));
  EXPECT_FALSE(Get(*server, "/livez")->has_header("X-Begun"));
  EXPECT_THAT(Get(*server, "/nothing")->body, HasSubstr("{\"error\""));
}

}  // namespace
}  // namespace linserve
