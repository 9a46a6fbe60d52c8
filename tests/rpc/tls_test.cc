#include <grpcpp/grpcpp.h>

#include <chrono>

#include "support/test_certificates.h"
#include "support/test_files.h"
#include "support/test_server.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

using absl::StatusCode;

class RpcTls : public testing::Test {
 protected:
  RpcTls() { WriteTlsFiles(authority_, files_); }

  static ClientOptions OptionsOf(const TestServer& server, const std::string& authority) {
    ClientOptions options = server.client_options();
    options.timeout = std::chrono::seconds(20);
    options.tls = {.enabled = true, .authority = authority};
    return options;
  }

  TlsFiles WithoutAuthority() const { return {files_.certificate, files_.private_key, ""}; }

  TempDir directory_;
  TestAuthority authority_;
  TlsFiles files_{directory_.File("tls.crt"), directory_.File("tls.key"),
                  directory_.File("ca.crt")};
  const EmbedCall call_ = CallOf("tokens", {Tokens("a", {1, 2})});
};

TEST_F(RpcTls, IsForThoseWhoSpeakItAndTrustTheAuthority) {
  TestServer server({.grpc = {.access = {.tls = WithoutAuthority()}}});
  EXPECT_TRUE(EmbeddingClient(OptionsOf(server, authority_.pem())).Embed(call_).ok());
  ClientOptions stranger = OptionsOf(server, TestAuthority().pem());
  EXPECT_THAT(EmbeddingClient(stranger).Embed(call_), IsStatus(StatusCode::kUnavailable, ""));
  EXPECT_FALSE(EmbeddingClient(server.client_options()).Embed(call_).ok());
}

TEST_F(RpcTls, MutualIsForThoseWithACertificate) {
  TestServer server({.grpc = {.access = {.tls = files_}}});
  ClientOptions options = OptionsOf(server, authority_.pem());
  EXPECT_FALSE(EmbeddingClient(options).Embed(call_).ok());
  const auto mine = authority_.Sign("client");
  options.tls.certificate = mine.certificate;
  options.tls.private_key = mine.private_key;
  EXPECT_TRUE(EmbeddingClient(options).Embed(call_).ok());
  const auto forged = TestAuthority().Sign("client");
  options.tls.certificate = forged.certificate;
  options.tls.private_key = forged.private_key;
  EXPECT_FALSE(EmbeddingClient(options).Embed(call_).ok());
}

TEST_F(RpcTls, ANewCertificateIsServedWithoutARestart) {
  TestServer server({.grpc = {.access = {.tls = WithoutAuthority()}}});
  EmbeddingClient open(OptionsOf(server, authority_.pem()));
  EXPECT_TRUE(open.Embed(call_).ok());
  const TestAuthority next;
  WriteTlsFiles(next, files_);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  ClientOptions options = OptionsOf(server, next.pem());
  while (!EmbeddingClient(options).Embed(call_).ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
  }
  EXPECT_TRUE(open.Embed(call_).ok()) << "its connection is older than the change";
}

TEST_F(RpcTls, AKeyWhoseCertificateIsNotThereYetIsNotServed) {
  TestServer server({.grpc = {.access = {.tls = WithoutAuthority()}}});
  const ClientOptions options = OptionsOf(server, authority_.pem());
  WriteAll(files_.private_key, authority_.Sign("server").private_key);
  EXPECT_TRUE(WaitUntil([&] {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(EmbeddingClient(options).Embed(call_).ok());
    const std::string log = testing::internal::GetCapturedStderr();
    return log.find("the certificate of before goes on") != std::string::npos;
  }));
  EXPECT_TRUE(EmbeddingClient(options).Embed(call_).ok());
}

TEST_F(RpcTls, ABrokenCertificateIsSaidAtTheStart) {
  WriteAll(files_.certificate, "no certificate");
  Metrics metrics({});
  ModelRepository repository(metrics);
  const auto server = GrpcServer::Start({.address = {"127.0.0.1", 0}, .access = {.tls = files_}},
                                        repository, metrics);
  EXPECT_THAT(server, IsStatus(StatusCode::kInvalidArgument, "tls_certificate"));
}

}  // namespace
}  // namespace linserve
