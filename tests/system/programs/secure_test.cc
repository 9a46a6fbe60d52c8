#include <gmock/gmock.h>

#include "support/programs.h"
#include "support/test_certificates.h"

namespace linserve {
namespace {

using testing::HasSubstr;
using testing::Not;

class SecureTest : public testing::Test {
 protected:
  SecureTest() {
    InitModel(directory_.File("models/m"));
    WriteAll(tokens_, R"({"tokens": [{"name": "app", "token": "the token of the app"},
                          {"name": "prometheus", "token": "the token of metrics",
                           "may": ["metrics"]}]})");
    WriteAll(app_, "the token of the app\n");
  }

  Arguments WithTls() const {
    const TlsFiles files{directory_.File("tls.crt"), directory_.File("tls.key"),
                         directory_.File("ca.crt")};
    WriteTlsFiles(TestAuthority(), files);
    return {"--tls-certificate", files.certificate, "--tls-private-key", files.private_key};
  }

  TempDir directory_;
  const std::string tokens_ = directory_.File("tokens.json");
  const std::string app_ = directory_.File("token.txt");
};

TEST_F(SecureTest, ATokenIsAskedForOnBothPortsAndNeverLogged) {
  RunningServer server(directory_.File("models"),
                       {"--tokens-file", tokens_, "--log-level", "debug"});
  ASSERT_TRUE(server.ready());
  const Arguments embed = {"embed", "--target", server.target(), "--token-offset", "0"};
  const Outcome without = RunClient(embed, "1 2 3\n");
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.err, HasSubstr("UNAUTHENTICATED: there is no token"));
  Arguments with_token = embed;
  with_token.insert(with_token.end(), {"--token-file", app_});
  const Outcome with = RunClient(with_token, "1 2 3\n");
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_THAT(server.Get("/metrics", 401), HasSubstr("authorization: Bearer"));
  EXPECT_EQ(server.Get("/livez"), "ok\n");
  EXPECT_EQ(server.Stop(), 0);
  const std::string log = server.log();
  EXPECT_THAT(log, HasSubstr(R"("caller":"app")"));
  EXPECT_THAT(log, Not(HasSubstr("the token of")));
}

TEST_F(SecureTest, TlsIsSpokenByBothPrograms) {
  RunningServer server(directory_.File("models"), WithTls());
  ASSERT_TRUE(server.ready());
  const Arguments models = {"models", "--target", server.target(), "--timeout", "5"};
  EXPECT_EQ(RunClient(models).code, 1);
  Arguments trusting = models;
  trusting.insert(trusting.end(), {"--tls-ca", directory_.File("ca.crt")});
  const Outcome listed = RunClient(trusting);
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("m"));
  EXPECT_EQ(server.Stop(), 0);
}

TEST_F(SecureTest, ABrokenFileStopsTheStartWithItsName) {
  WriteAll(tokens_, "{}");
  const Arguments serve = {"serve",          "--model-repository", directory_.File("models"),
                           "--grpc-address", "127.0.0.1:0",        "--http-address",
                           "127.0.0.1:0"};
  Arguments arguments = serve;
  arguments.insert(arguments.end(), {"--tokens-file", tokens_});
  const Outcome tokens = RunLinserve(arguments);
  EXPECT_EQ(tokens.code, 1);
  EXPECT_THAT(tokens.err, HasSubstr(tokens_ + ": expected JSON of the form"));
  arguments = serve;
  arguments.insert(arguments.end(), {"--tls-certificate", app_, "--tls-private-key", app_});
  const Outcome tls = RunLinserve(arguments);
  EXPECT_EQ(tls.code, 1);
  EXPECT_THAT(tls.err, HasSubstr("tls_certificate " + app_ + " cannot be used"));
}

TEST_F(SecureTest, TheClientNamesAFileThatIsOfNoUse) {
  const auto fault = [this](const Arguments& options) {
    Arguments arguments = {"models", "--target", "127.0.0.1:1"};
    for (const std::string& option : options) {
      arguments.push_back(option.starts_with("--") ? option : directory_.File(option));
    }
    const Outcome outcome = RunClient(arguments);
    EXPECT_EQ(outcome.code, 1);
    return outcome.err;
  };
  WithTls();
  WriteTlsFiles(TestAuthority(),
                TlsFiles{directory_.File("another.crt"), directory_.File("another.key"),
                         directory_.File("another-ca.crt")});
  EXPECT_THAT(fault({"--tls-ca", "token.txt"}),
              HasSubstr("--tls-ca " + app_ + " holds no certificate in PEM: no start line"));
  EXPECT_THAT(fault({"--tls-certificate", "tls.crt", "--tls-key", "token.txt"}),
              HasSubstr("--tls-key " + app_ + " holds no private key"));
  EXPECT_THAT(fault({"--tls-certificate", "tls.crt", "--tls-key", "another.key"}),
              HasSubstr("is not the key of --tls-certificate"));
}

TEST_F(SecureTest, TlsToAServerOfPlainTextIsSaidInOneLine) {
  RunningServer server(directory_.File("models"), {});
  ASSERT_TRUE(server.ready());
  const Outcome outcome = RunClient({"models", "--target", server.target(), "--tls"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("leave out `--tls` if it speaks plain text"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("ssl_transport_security")));
}

TEST_F(SecureTest, PlainTextBeyondThisMachineIsAWarning) {
  RunningServer server(directory_.File("models"), {"--metrics-address", "0.0.0.0:0"});
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(server.Stop(), 0);
  EXPECT_THAT(server.log(), HasSubstr("plain text is served beyond this machine"));
}

}  // namespace
}  // namespace linserve
