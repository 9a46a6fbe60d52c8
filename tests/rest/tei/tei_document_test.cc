#include "rest/tei/tei_document.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "rest/rest_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A server with a model for each of the kinds that TEI has.
class TeiDocumentTest : public RestTest {
 protected:
  TeiDocumentTest()
      : RestTest({.dimensions = {2},
                  .text = true,
                  .prompts = {{"query", "the "}},
                  .classifiers = {{"moods", {"sad", "glad"}}, {"ranker", {"fits"}}},
                  .sparse = "words"}) {}

  Reply Call(const std::string& route, const json& body) const {
    const std::string path = route.substr(route.find('/'));
    const httplib::Headers named = {{"linserve-model", ModelFor(path)}};
    if (route.starts_with("GET")) return Of(LocalHttpClient(http_->port()).Get(path, named));
    return Post(path, body.dump(), named);
  }

  static std::string ModelFor(const std::string& path) {
    if (path == "/predict") return "moods";
    if (path == "/embed_sparse") return "words";
    return path == "/rerank" ? "ranker" : "tokens";
  }

  // Returns whether the document says that the route may answer so.
  std::string MisfitOf(const std::string& route, const Reply& reply) const {
    const json& responses = document_.routes()[route]["responses"];
    const std::string code = std::to_string(reply.status);
    if (!responses.contains(code)) return "code " + code + " " + reply.body;
    const json& schema = responses[code];
    if (schema.empty() || schema.value("type", "") == "string") return "";
    return document_.Misfit(reply.parsed, schema);
  }

  // Requests of all fields that each route has.
  const std::map<std::string, json> full_ = {
      {"POST /embed",
       {{"inputs", {"the server", "a"}},
        {"truncate", true},
        {"truncation_direction", "Left"},
        {"prompt_name", "query"},
        {"normalize", true},
        {"dimensions", 2}}},
      {"POST /embed_all",
       {{"inputs", "the server"},
        {"truncate", true},
        {"truncation_direction", "Right"},
        {"prompt_name", "query"}}},
      {"POST /embed_sparse",
       {{"inputs", {"ten", "thirty"}},
        {"truncate", true},
        {"truncation_direction", "Left"},
        {"prompt_name", "query"}}},
      {"POST /similarity",
       {{"inputs", {{"source_sentence", "the server"}, {"sentences", {"a", "the server"}}}},
        {"parameters",
         {{"truncate", true}, {"truncation_direction", "Left"}, {"prompt_name", "query"}}}}},
      {"POST /tokenize",
       {{"inputs", {"the server", "a"}}, {"add_special_tokens", true}, {"prompt_name", "query"}}},
      {"POST /decode", {{"ids", {{5, 6}, {7}}}, {"skip_special_tokens", true}}},
      {"POST /predict",
       {{"inputs", {"ten", "thirty"}},
        {"truncate", true},
        {"truncation_direction", "Left"},
        {"raw_scores", true}}},
      {"POST /rerank",
       {{"query", "ten"},
        {"texts", {"ten", "thirty"}},
        {"truncate", true},
        {"truncation_direction", "Right"},
        {"raw_scores", true},
        {"return_text", true}}},
      {"POST /v1/embeddings",
       {{"input", "the server"},
        {"model", "tokens"},
        {"encoding_format", "float"},
        {"user", "somebody"}}},
      {"GET /health", {}},
      {"GET /info", {}},
      {"GET /metrics", {}},
  };
  const TeiDocument document_;
};

TEST_F(TeiDocumentTest, EveryRouteAnswersAFullRequestAsItSays) {
  for (const auto& [route, described] : document_.routes().items()) {
    ASSERT_TRUE(full_.contains(route)) << route << " is new";
    const Reply reply = Call(route, full_.at(route));
    EXPECT_EQ(reply.status, 200) << route << reply.body;
    EXPECT_EQ(MisfitOf(route, reply), "") << route;
  }
}

// /v1/embeddings is OpenAI's, and answers errors in its words.
TEST_F(TeiDocumentTest, EveryFieldIsReadWhereverItStands) {
  for (const auto& [route, full] : full_) {
    if (!full.is_object() || route == "POST /v1/embeddings") continue;
    const json& schema = document_.schemas()[document_.routes()[route]["request"]];
    EXPECT_EQ(document_.Misfit(full, schema), "") << route << ": the test's own request";
    for (const auto& [name, property] : schema["properties"].items()) {
      EXPECT_TRUE(full.contains(name)) << route << " does not try " << name;
      json wrong = full;
      wrong[name] = {{"an", "object"}};
      const Reply reply = Call(route, wrong);
      if (name == "parameters") continue;  // it is an object, and its members come below
      EXPECT_EQ(reply.status, 422) << route << " drops " << name;
      EXPECT_EQ(MisfitOf(route, reply), "") << route;
    }
  }
  const json& parameters = document_.schemas()["SimilarityParameters"]["properties"];
  for (const auto& [name, property] : parameters.items()) {
    json wrong = full_.at("POST /similarity");
    wrong["parameters"][name] = {{"an", "object"}};
    EXPECT_EQ(Call("POST /similarity", wrong).status, 422) << name;
  }
}

TEST_F(TeiDocumentTest, WhatIsRequiredIsAskedFor) {
  for (const auto& [route, full] : full_) {
    if (!full.is_object() || route == "POST /v1/embeddings") continue;
    for (const auto& name : document_.schemas()[document_.routes()[route]["request"]]["required"]) {
      json less = full;
      less.erase(name.get<std::string>());
      const Reply reply = Call(route, less);
      EXPECT_EQ(reply.status, 422) << route;
      EXPECT_THAT(reply.body, HasSubstr("'" + name.get<std::string>() + "'")) << route;
      EXPECT_EQ(MisfitOf(route, reply), "") << route;
    }
  }
}

TEST_F(TeiDocumentTest, FaultsHaveTheTypesThatItLists) {
  for (const auto& [route, name] :
       {std::pair("POST /embed", "inputs"), std::pair("POST /embed_all", "inputs"),
        std::pair("POST /embed_sparse", "inputs"), std::pair("POST /tokenize", "inputs"),
        std::pair("POST /decode", "ids"), std::pair("POST /predict", "inputs"),
        std::pair("POST /rerank", "texts")}) {
    const Reply empty = Call(route, {{"query", "ten"}, {name, json::array()}});
    EXPECT_EQ(empty.status, 400) << route;
    EXPECT_EQ(empty.parsed["error_type"], "Empty") << route;
    EXPECT_EQ(MisfitOf(route, empty), "") << route;
  }
  for (const char* wrong : {"", "[]", "{", R"({"inputs": [1, "a"]})"}) {
    const Reply reply = Post("/embed", wrong);
    EXPECT_EQ(reply.status, 422) << wrong;
    EXPECT_EQ(MisfitOf("POST /embed", reply), "") << wrong;
  }
}

}  // namespace
}  // namespace linserve
