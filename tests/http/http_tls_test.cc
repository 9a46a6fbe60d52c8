#include <chrono>

#include "http/http_fixture.h"
#include "http/raw_connection.h"
#include "support/test_certificates.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

// Certificates of an authority of its own.
class HttpTls : public HttpServerTest {
 protected:
  HttpTls() {
    WriteTlsFiles(authority_, files_);
    const auto client = authority_.Sign("client");
    WriteAll(directory_.File("client.crt"), client.certificate);
    WriteAll(directory_.File("client.key"), client.private_key);
  }

  std::unique_ptr<HttpServer> StartTls(const TlsFiles& files, const HttpLimits& limits = {}) {
    auto server = HttpServer::Start({.port = 0, .tls = files, .limits = limits}, handlers_);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  httplib::Result GetTls(const HttpServer& server, const std::string& path,
                         bool with_certificate = false) const {
    httplib::SSLClient client("127.0.0.1", server.port(),
                              with_certificate ? directory_.File("client.crt") : "",
                              with_certificate ? directory_.File("client.key") : "");
    client.set_ca_cert_path(files_.client_ca.c_str());
    client.enable_server_certificate_verification(true);
    return client.Get(path);
  }

  TempDir directory_;
  const TestAuthority authority_;
  const TlsFiles files_{directory_.File("tls.crt"), directory_.File("tls.key"),
                        directory_.File("ca.crt")};
};

TEST_F(HttpTls, ServesThoseWhoSpeakIt) {
  const auto server = StartTls({files_.certificate, files_.private_key, ""});
  const auto answer = GetTls(*server, "/metrics");
  ASSERT_TRUE(answer) << httplib::to_string(answer.error());
  EXPECT_EQ(answer->body, "linserve_up 1\n");
  EXPECT_FALSE(Get(*server, "/metrics"));
}

TEST_F(HttpTls, MutualIsForThoseWithACertificateButForHealth) {
  const auto server = StartTls(files_);
  for (const char* path : {"/livez", "/readyz", "/v2/health/live", "/v2/health/ready"}) {
    const auto answer = GetTls(*server, path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 200) << path;
  }
  for (const char* path : {"/metrics", "/", "/nothing"}) {
    const auto answer = GetTls(*server, path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 401) << path;
    EXPECT_THAT(answer->body, HasSubstr("client certificate"));
  }
  const auto answer = GetTls(*server, "/metrics", true);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST_F(HttpTls, ANewCertificateIsServedWithoutARestart) {
  const auto server = StartTls({files_.certificate, files_.private_key, ""});
  ASSERT_TRUE(GetTls(*server, "/livez"));
  const TestAuthority next;
  WriteTlsFiles(next, files_);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!GetTls(*server, "/livez")) ASSERT_LT(std::chrono::steady_clock::now(), limit);
}

TEST_F(HttpTls, AHandshakeHasItsTime) {
  const auto server = StartTls(files_, {.patience = std::chrono::milliseconds(200)});
  RawConnection caller(server->port());
  const std::string hello("\x16\x03\x01\x02", 4);
  EXPECT_TRUE(caller.Send(hello));
  EXPECT_EQ(caller.ReadAll(), "");
}

TEST_F(HttpTls, ACallerWhoLeavesIsNoticed) {
  handlers_.routes = {WaitUntilAbandoned()};
  const auto server = StartTls({files_.certificate, files_.private_key, ""});
  httplib::SSLClient client("127.0.0.1", server->port());
  client.enable_server_certificate_verification(false);
  client.set_read_timeout(std::chrono::milliseconds(1));
  EXPECT_FALSE(client.Post("/wait", "", "text/plain"));
  client.stop();
  EXPECT_TRUE(noticed_.get_future().get());
}

}  // namespace
}  // namespace linserve
