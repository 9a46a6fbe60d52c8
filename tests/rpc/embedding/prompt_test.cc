#include "support/test_server.h"

namespace linserve {
namespace {

// Asks by both protocols of linserve's own client.
class PromptTest : public ::testing::TestWithParam<Protocol> {
 protected:
  ClientOptions Options() const {
    ClientOptions options = server_.client_options();
    options.protocol = GetParam();
    return options;
  }

  static EmbedCall CallOfText(const std::string& text, const std::string& prompt_name) {
    EmbedCall call = CallOf("tokens", {{"a", {}, text}});
    call.prompt_name = prompt_name;
    return call;
  }

  std::vector<float> RowsOf(const std::string& text, const std::string& prompt_name) {
    const auto results = client_.Embed(CallOfText(text, prompt_name));
    EXPECT_TRUE(results.ok()) << results.status();
    return Values(results->at(0).outputs.at("y"));
  }

  absl::Status Refused(const EmbedCall& call) {
    const auto results = client_.Embed(call);
    return results.ok() ? results->at(0).status : results.status();
  }

  TestServer server_{{.text = true, .prompts = {{"query", "the "}, {"passage", "a "}}}};
  EmbeddingClient client_{Options()};
};

TEST_P(PromptTest, StandsBeforeEachText) {
  EXPECT_EQ(RowsOf("server answers", "query"), RowsOf("the server answers", ""));
  EXPECT_NE(RowsOf("server answers", "query"), RowsOf("server answers", ""));
}

TEST_P(PromptTest, ThatTheModelDoesNotHaveIsRefusedWithThoseThatItHas) {
  EXPECT_THAT(Refused(CallOfText("a", "question")),
              IsStatus(absl::StatusCode::kInvalidArgument, "expected one of 'passage', 'query'"));
}

TEST_P(PromptTest, StandsBeforeNoTokenIds) {
  EmbedCall call = CallOf("tokens", {Tokens("a", {5, 6})});
  call.prompt_name = "query";
  EXPECT_THAT(Refused(call), IsStatus(absl::StatusCode::kInvalidArgument,
                                      "a prompt stands before texts, not token ids"));
}

INSTANTIATE_TEST_SUITE_P(Protocols, PromptTest,
                         ::testing::Values(Protocol::kLinserve, Protocol::kOip),
                         [](const auto& protocol) {
                           return protocol.param == Protocol::kOip ? "Oip" : "Linserve";
                         });

}  // namespace
}  // namespace linserve
