#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "rest/rest_fixture.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RestTest, EmbedsAsOpenAiDoes) {
  const Reply reply = Post("/v1/embeddings", R"({"model": "tokens", "input": [[5, 6], [7]]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.parsed["usage"]["total_tokens"], 3);
  ASSERT_EQ(reply.parsed["data"].size(), 2U);
  EXPECT_EQ(reply.parsed["data"][1]["index"], 1);
  // The rows of 7 are (7, 0, 1, 1), over their norm.
  const auto vector = reply.parsed["data"][1]["embedding"].get<std::vector<float>>();
  EXPECT_THAT(vector, ElementsAre(testing::FloatNear(0.980196F, 1e-5F), 0,
                                  testing::FloatNear(0.140028F, 1e-5F),
                                  testing::FloatNear(0.140028F, 1e-5F)));
  const Reply encoded =
      Post("/v1/embeddings", R"({"model": "tokens", "input": [7], "encoding_format": "base64"})");
  EXPECT_EQ(encoded.parsed["data"][0]["embedding"].get<std::string>().size(), 24U);
  // Padded, these sequences would be gigabytes.
  std::string uneven = R"({"model": "tokens", "input": [[1)";
  for (int i = 1; i < kTestLongest; ++i) uneven += ",1";
  for (int i = 0; i < 15000; ++i) uneven += "],[1";
  EXPECT_EQ(Post("/v1/embeddings", uneven + "]]}").parsed["data"].size(), 15001U);
  const Reply text = Post("/v1/embeddings", R"({"model": "tokens", "input": "text"})");
  EXPECT_EQ(text.status, 400);
  EXPECT_THAT(text.parsed["error"]["message"].get<std::string>(), HasSubstr("no tokenizer"));
  for (const char* wrong :
       {"", "[]", "{}", R"({"input": []})", R"({"input": [[1], 2]})", R"({"input": [1, [2]]})",
        R"({"input": [1.5]})", R"({"input": [[]]})", R"({"input": [1], "model": 1})",
        R"({"input": [1], "model": "tokens", "encoding_format": "int"})",
        R"({"input": [1], "model": "tokens", "dimensions": 3})",
        R"({"input": [1], "model": "tokens", "dimensions": 0})",
        R"({"input": [1], "model": "tokens", "dimensions": "4"})",
        R"({"input": [1], "model": "floats"})", R"({"input": [1]})", "[[[[[[[[[[["}) {
    EXPECT_EQ(Post("/v1/embeddings", wrong).status, 400) << wrong;
  }
}

std::string RequestIdOf(const httplib::Headers& headers) {
  const auto found = headers.find("x-request-id");
  return found == headers.end() ? "" : found->second;
}

class RestDimensionsTest : public RestTest {
 protected:
  RestDimensionsTest() : RestTest({.dimensions = {2}}) {}

  Reply Embed(const std::string& dimensions) const {
    return Post("/v1/embeddings",
                R"({"model": "tokens", "input": [7], "dimensions": )" + dimensions + "}");
  }
};

TEST_F(RestDimensionsTest, VectorsAreAsWideAsTheModelOrAsItWasTrainedToBeCutTo) {
  const json whole = Embed("null").parsed["data"][0]["embedding"];
  EXPECT_EQ(whole.size(), 4U);
  EXPECT_EQ(Embed("4").parsed["data"][0]["embedding"], whole);
  // The rows of 7 begin with (7, 0).
  EXPECT_EQ(Embed("2").parsed["data"][0]["embedding"], json({1.0, 0.0}));
  const Reply other = Embed("3");
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(other.parsed["error"]["param"], "dimensions");
  EXPECT_EQ(other.parsed["error"]["message"],
            "'dimensions' is 3, but model 'tokens' gives vectors of 4, 2");
}

TEST_F(RestTest, ErrorsUnderV1AreOpenAis) {
  struct Case {
    std::string body;
    std::string code;
    json param;
    std::string message;
  };
  for (const Case& one : std::vector<Case>{
           {R"({"input": [1], "model": "nobody"})", "model_not_found", "model", "'nobody'"},
           {R"({"input": [1]})", "invalid_value", "model",
            "; name one in the header 'linserve-model', or over HTTP in the field 'model'"},
           {R"({"input": [1], "model": 1})", "invalid_value", "model", "expected a string"},
           {R"({"model": "tokens"})", "invalid_value", "input", "'input'"},
           {R"({"input": [1.5], "model": "tokens"})", "invalid_value", "input", "token ids"},
           {R"({"input": [1], "model": "tokens", "encoding_format": "int"})", "invalid_value",
            "encoding_format", "base64"},
           {R"({"input": [1], "model": "tokens", "dimensions": 3})", "invalid_value", "dimensions",
            "gives vectors of 4; it was not trained for others"},
           {R"({"input": [100257], "model": "tokens"})", "invalid_value", "input",
            "check_embedding_ctx_length=False"},
           {R"({"input": [1], "model": "floats"})", "invalid_value", "model", "/v2/models/floats"},
           {R"({"input": [[]], "model": "tokens"})", "invalid_value", "input", ""},
           {"[]", "invalid_value", nullptr, "not a JSON object"}}) {
    const Reply reply = Post("/v1/embeddings", one.body);
    const json& error = reply.parsed["error"];
    EXPECT_EQ(reply.status, one.code == "model_not_found" ? 404 : 400) << one.body;
    EXPECT_EQ(error["type"], "invalid_request_error") << reply.body;
    EXPECT_EQ(error["code"], one.code) << reply.body;
    EXPECT_EQ(error["param"], one.param) << reply.body;
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(one.message));
    EXPECT_FALSE(RequestIdOf(reply.headers).empty());
  }
}

TEST_F(RestTest, TheModelMayBeNamedByAHeader) {
  const std::string body = R"({"input": [1]})";
  for (const char* path : {"/v1/embeddings", "/embeddings"}) {
    EXPECT_EQ(Post(path, body).status, 400);
    EXPECT_EQ(Post(path, body, {{"linserve-model", "tokens"}}).parsed["model"], "tokens");
  }
}

TEST_F(RestTest, WhatIsRefusedUnderV1BeforeItComesToACallIsSaidInOpenAisFormToo) {
  httplib::Client client = LocalHttpClient(http_->port());
  const httplib::Headers named = {{"x-request-id", "7"}};
  for (const auto& [result, status, code] :
       {std::tuple{client.Get("/v1/nothing", named), 404, "unknown_url"},
        {client.Get("/v1/embeddings", named), 405, "method_not_supported"},
        {client.Post("/v1/embeddings",
                     httplib::Headers{{"x-request-id", "7"}, {"content-encoding", "br"}}, "{}",
                     "application/json"),
         415, "unsupported_media_type"},
        {client.Post("/v1/embeddings", named, std::string(2 << 20, ' '), "application/json"), 413,
         "request_too_large"},
        {client.Get("/v1/models/nobody", named), 404, "model_not_found"}}) {
    const Reply reply = Of(result);
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(reply.parsed["error"]["code"], code) << reply.body;
    EXPECT_TRUE(reply.parsed["error"].contains("param")) << reply.body;
    EXPECT_FALSE(reply.parsed["error"]["message"].get<std::string>().empty());
    EXPECT_EQ(RequestIdOf(reply.headers), "7");
  }
  EXPECT_FALSE(RequestIdOf(Get("/v1/models").headers).empty());
  EXPECT_EQ(Get("/v2/nothing").parsed["error"], "no such page");
}

struct TokensFile {
  TokensFile() {
    WriteAll(path, R"({"tokens": [{"name": "one", "token": "a token that is known"},
                                   {"name": "two", "token": "a token for metrics",
                                    "may": ["metrics"]}]})");
  }

  TempDir directory;
  std::string path = directory.File("tokens.json");
};

class RestAccessTest : TokensFile, public RestTest {
 protected:
  RestAccessTest() : RestTest({.grpc = {.access = {.tokens_file = path}}}) {}
};

TEST_F(RestAccessTest, WhoMayNotCallIsToldInOpenAisForm) {
  httplib::Client client = LocalHttpClient(http_->port());
  for (const httplib::Headers& headers :
       {httplib::Headers{}, {{"authorization", "Bearer a token that nobody knows"}}}) {
    for (const Reply& reply :
         {Of(client.Post("/v1/embeddings", headers, R"({"model": "tokens", "input": [1]})",
                         "application/json")),
          Of(client.Get("/v1/models", headers)), Of(client.Get("/v1/models/tokens", headers))}) {
      EXPECT_EQ(reply.status, 401) << reply.body;
      EXPECT_EQ(reply.parsed["error"]["type"], "authentication_error") << reply.body;
      EXPECT_EQ(reply.parsed["error"]["code"], "invalid_api_key") << reply.body;
      EXPECT_FALSE(RequestIdOf(reply.headers).empty());
    }
  }
}

TEST_F(RestAccessTest, WhatMayBeDoneIsAskedAsOverGrpc) {
  const httplib::Headers metrics = {{"authorization", "Bearer a token for metrics"}};
  const Reply index = Post("/v2/repository/index", "{}", metrics);
  EXPECT_EQ(index.status, 200);
  EXPECT_EQ(index.parsed, json::array());
  const Reply load = Post("/v2/repository/models/tokens/load", "{}", metrics);
  EXPECT_EQ(load.status, 403);
  EXPECT_THAT(load.body, HasSubstr("control"));
  EXPECT_EQ(Post(kInfer, ThreeTokens().dump(), metrics).status, 403);
}

class RestTextTest : public RestTest {
 protected:
  RestTextTest() : RestTest({.text = true}) {}
};

TEST_F(RestTextTest, EveryApiTakesTexts) {
  const Reply one = Post("/v1/embeddings", R"({"model": "tokens", "input": "the server answers"})");
  EXPECT_EQ(one.parsed["usage"]["prompt_tokens"], 10) << one.body;
  const Reply two =
      Post("/v1/embeddings", R"({"model": "tokens", "input": ["the server answers", "a"]})");
  EXPECT_EQ(two.parsed["data"].size(), 2U);
  EXPECT_EQ(two.parsed["data"][0]["embedding"], one.parsed["data"][0]["embedding"]);
  const Reply tei = Post("/embed", R"({"model": "tokens", "inputs": "the server answers"})");
  EXPECT_EQ(tei.parsed[0], one.parsed["data"][0]["embedding"]);
  const Reply oip = Post(kInfer, R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1],
      "data": ["the server answers"]}], "outputs": [{"name": "y"}, {"name": "tokens"}],
      "parameters": {"pooling": "mean", "normalize": true}})");
  EXPECT_EQ(oip.parsed["outputs"][0]["data"], one.parsed["data"][0]["embedding"]) << oip.body;
  EXPECT_EQ(oip.parsed["outputs"][1]["data"], json({10}));
}

TEST_F(RestTextTest, OpenAiCutsTextsWhereTheCallerAsksForIt) {
  const auto embed = [&](const json& options) {
    json body = {{"model", "tokens"}, {"input", "the server answers"}};
    body.update(options);
    return Post("/v1/embeddings", body.dump());
  };
  const auto tokens = [&](const json& options) {
    const Reply reply = embed(options);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.parsed["usage"]["total_tokens"].get<int>();
  };
  EXPECT_EQ(tokens({{"truncate_prompt_tokens", nullptr}, {"truncate", nullptr}}), 10);
  EXPECT_EQ(tokens({{"truncate_prompt_tokens", -1}}), 10);
  EXPECT_EQ(tokens({{"truncate_prompt_tokens", 100}}), 10);
  EXPECT_EQ(tokens({{"truncate_prompt_tokens", 4}}), 4);
  EXPECT_EQ(tokens({{"truncate_prompt_tokens", 4}, {"input", {1, 2, 3, 4, 5}}}), 4);
  const auto vector = [&](const json& options) { return embed(options).parsed["data"]; };
  const json right = vector({{"truncate_prompt_tokens", 4}});
  EXPECT_EQ(vector({{"truncate_prompt_tokens", 4}, {"truncate", "END"}}), right);
  EXPECT_NE(vector({{"truncate_prompt_tokens", 4}, {"truncate", "left"}}), right);
  EXPECT_EQ(vector({{"truncate_prompt_tokens", 2}, {"truncate", "start"}, {"input", {1, 2, 3}}}),
            vector({{"input", {2, 3}}}));
  const std::string model = R"({"model":"tokens","input":[1,2,3,4,5],)";
  for (const char* both : {R"("truncate":false,"truncate_prompt_tokens":4})",
                           R"("truncate_prompt_tokens":4,"truncate":false})"}) {
    EXPECT_EQ(Post("/v1/embeddings", model + both).status, 400) << both;
  }
  for (const json& wrong : {json{{"truncate_prompt_tokens", 0}},
                            {{"truncate_prompt_tokens", -2}},
                            {{"truncate_prompt_tokens", "4"}},
                            {{"truncate", "middle"}}}) {
    const Reply reply = embed(wrong);
    EXPECT_EQ(reply.status, 400) << wrong;
    EXPECT_THAT(reply.body, HasSubstr("'" + wrong.begin().key() + "': expected")) << wrong;
  }
}

// Returns a text of more tokens than "tokens" takes, whose ends differ.
std::string LongText() {
  std::string text;
  for (const char* word : {"server ", "a "}) {
    for (int64_t i = 0; i < kTestLongest; ++i) text += word;
  }
  return text;
}

class DefaultTruncation : public RestTest {
 protected:
  DefaultTruncation() : RestTest({.text = true, .default_truncation = Truncation::kLeft}) {}
};

TEST_F(DefaultTruncation, IsTheModelsUnlessTheRequestSaysOtherwise) {
  const json text = {LongText()};
  const auto embed = [&](const json& options) {
    json body = {{"model", "tokens"}, {"inputs", text}};
    body.update(options);
    return Post("/embed", body.dump());
  };
  const Reply left = embed(json::object());
  ASSERT_EQ(left.status, 200) << left.body;
  EXPECT_EQ(embed({{"truncate", true}}).body, left.body);
  EXPECT_EQ(embed({{"truncation_direction", "left"}}).body, left.body);
  EXPECT_EQ(embed({{"truncate", false}}).status, 422);
  const Reply right = embed({{"truncation_direction", "right"}});
  EXPECT_EQ(right.status, 200);
  EXPECT_NE(right.body, left.body);

  json openai = {{"model", "tokens"}, {"input", text}};
  EXPECT_EQ(Post("/v1/embeddings", openai.dump()).parsed["data"][0]["embedding"], left.parsed[0]);
  openai["truncate"] = false;
  EXPECT_EQ(Post("/v1/embeddings", openai.dump()).status, 400);

  json infer = {
      {"inputs", {{{"name", "text"}, {"datatype", "BYTES"}, {"shape", {1}}, {"data", text}}}},
      {"parameters", {{"pooling", "mean"}, {"normalize", true}}}};
  EXPECT_EQ(Post(kInfer, infer.dump()).parsed["outputs"][0]["data"], left.parsed[0]);
  infer["parameters"]["truncation"] = "none";
  EXPECT_EQ(Post(kInfer, infer.dump()).status, 400);
}

TEST_F(DefaultTruncation, HoldsForTheNativeProtocolToo) {
  EmbeddingClient client(server_.client_options());
  EmbedCall call = CallOf("tokens", {{.id = "long", .inputs = {}, .text = LongText()}});
  const auto status = [&] {
    const auto results = client.Embed(call);
    return results.ok() ? results->at(0).status : results.status();
  };
  EXPECT_TRUE(status().ok()) << status();
  call.truncation = Truncation::kRight;
  EXPECT_TRUE(status().ok()) << status();
  call.truncation = Truncation::kNone;
  EXPECT_TRUE(absl::IsInvalidArgument(status())) << status();
}

TEST_F(RestTest, AModelIsFoundByTheNameThatItHasOnAHub) {
  for (const char* name : {"tokens", "org/tokens"}) {
    const Reply reply =
        Post("/v1/embeddings", json{{"model", name}, {"input", {7}}, {"normalize", false}}.dump());
    EXPECT_EQ(reply.parsed["model"], "tokens") << reply.body;
    EXPECT_EQ(reply.parsed["data"][0]["embedding"], json({7, 0, 1, 1}));
    EXPECT_EQ(Get("/v1/models/" + std::string(name)).parsed["id"], "tokens");
  }
  EXPECT_EQ(Get("/v1/models/org/nobody").status, 404);
}

}  // namespace
}  // namespace linserve
