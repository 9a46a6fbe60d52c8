#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {

inline constexpr char kAll[] = "the token of everything";
inline constexpr char kOne[] = "the token of one model";
inline constexpr char kWatch[] = "the token of metrics";
inline constexpr char kSlow[] = "the token of slowness";

inline std::string TokensFile() {
  return std::string(R"({"tokens": [)") +
         R"({"name": "all", "may": ["infer", "control"], "token": ")" + kAll +
         R"("}, {"name": "one", "models": ["tokens"], "token": ")" + kOne +
         R"("}, {"name": "watch", "may": ["metrics"], "token": ")" + kWatch +
         R"("}, {"name": "slow", "requests_per_second": 0.5, "token": ")" + kSlow + R"("}]})";
}

// Has a server whose callers need the tokens above.
class RpcAccess : public testing::Test {
 protected:
  RpcAccess() { WriteAll(file_, TokensFile()); }

  TestServer& server() {
    if (!server_) {
      server_.emplace(
          TestServerOptions{.grpc = {.access = {.tokens_file = file_}}, .model_control = true});
    }
    return *server_;
  }

  EmbeddingClient ClientOf(const std::string& token, Protocol protocol = Protocol::kLinserve) {
    ClientOptions options = server().client_options();
    options.token = token;
    options.protocol = protocol;
    return EmbeddingClient(options);
  }

  double Refused(const std::string& reason) {
    return server().Scrape()[R"(linserve_refused_total{reason=")" + reason + "\"}"];
  }

  TempDir directory_;
  const std::string file_ = directory_.File("tokens.json");
  std::optional<TestServer> server_;
  const EmbedCall call_ = CallOf("tokens", {Tokens("a", {1, 2})});
};

}  // namespace linserve
