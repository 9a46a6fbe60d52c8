#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "rest/rest_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// "words" is a SparseModel(): a word weighs half the number of times that it stands in a text.
class TeiSparseTest : public RestTest {
 protected:
  TeiSparseTest()
      : RestTest({.text = true,
                  .prompts = {{"more", "twenty "}},
                  .classifiers = {{"moods", {"sad", "so-so"}}},
                  .sparse = "words"}) {}

  Reply Ask(const std::string& path, const json& body, const std::string& model = "words") const {
    return Post(path, body.dump(), {{"linserve-model", model}});
  }
};

json Weights(const std::vector<std::pair<int, double>>& weights) {
  json all = json::array();
  for (const auto& [index, value] : weights) all.push_back({{"index", index}, {"value", value}});
  return all;
}

TEST_F(TeiSparseTest, GivesTheWeightsThatAreNotZeroInTheirOrder) {
  // [CLS] is 1, [SEP] 2, and the others are what they are called.
  const json one = Weights({{1, 0.5}, {2, 0.5}, {10, 0.5}, {30, 1.0}});
  const Reply reply = Ask("/embed_sparse", {{"inputs", "thirty ten thirty"}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.parsed, json::array({one}));
  const Reply several = Ask("/embed_sparse", {{"inputs", {"ten", "thirty ten thirty"}}});
  EXPECT_EQ(several.parsed, json::array({Weights({{1, 0.5}, {2, 0.5}, {10, 0.5}}), one}));
  EXPECT_EQ(Ask("/embed_sparse", {{"inputs", {7, 5, 7}}}).parsed,
            json::array({Weights({{5, 0.5}, {7, 1.0}})}));
}

TEST_F(TeiSparseTest, IsWhatTheRootAnswersOfSuchAModel) {
  const json body = {{"inputs", {"ten", "thirty"}}};
  const json expected = Ask("/embed_sparse", body).parsed;
  EXPECT_EQ(Ask("/", body).parsed, expected);
  EXPECT_EQ(Ask("/invocations", body).parsed, expected);
}

TEST_F(TeiSparseTest, PromptsAndTruncationAreThoseOfTheRequest) {
  EXPECT_EQ(Ask("/embed_sparse", {{"inputs", "ten"}, {"prompt_name", "more"}}).parsed,
            Ask("/embed_sparse", {{"inputs", "twenty ten"}}).parsed);
  std::string text = "thirty ";
  for (int64_t i = 0; i < kTestLongest; ++i) text += "ten ";
  EXPECT_EQ(Ask("/embed_sparse", {{"inputs", text}}).status, 422);
  const auto words = [&](const char* side) {
    const Reply reply = Ask("/embed_sparse",
                            {{"inputs", text}, {"truncate", true}, {"truncation_direction", side}});
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.parsed[0].size();
  };
  EXPECT_EQ(words("Right"), 4U);
  EXPECT_EQ(words("Left"), 3U);
}

TEST_F(TeiSparseTest, OneKindOfModelIsNotTakenForAnother) {
  const auto refused = [&](const std::string& path, const std::string& model, const json& body,
                           const std::string& why) {
    const Reply reply = Ask(path, body, model);
    EXPECT_EQ(reply.status, 424) << path << reply.body;
    EXPECT_EQ(reply.parsed["error_type"], "Backend");
    EXPECT_THAT(reply.parsed["error"].get<std::string>(), HasSubstr(why));
  };
  const json text = {{"inputs", "ten"}};
  const std::string sparse = "it gives sparse embeddings: use /embed_sparse or tei.v1.EmbedSparse";
  refused("/embed", "words", text, "no embedding model; " + sparse);
  refused("/embed_all", "words", text, "no embedding model; " + sparse);
  refused("/similarity", "words",
          {{"inputs", {{"source_sentence", "ten"}, {"sentences", {"ten"}}}}}, sparse);
  refused("/predict", "words", text, "no classifier; " + sparse);
  refused("/rerank", "words", {{"query", "ten"}, {"texts", {"ten"}}}, "no re-ranker; " + sparse);
  refused("/embed_sparse", "tokens", {{"inputs", "a"}},
          "no sparse embedding model; it gives embeddings: use /embed");
  refused("/embed_sparse", "moods", text, "no sparse embedding model; it scores 2 classes");
  const Reply openai = Post("/v1/embeddings", R"({"model": "words", "input": "ten"})");
  EXPECT_THAT(openai.body, HasSubstr(sparse));
  EXPECT_NE(openai.status, 200);
}

TEST_F(TeiSparseTest, WhatItDoesNotHaveIsRefused) {
  for (const auto& [name, value] :
       {std::pair("normalize", json(true)), std::pair("dimensions", json(1)),
        std::pair("parameters", json("top_k"))}) {
    const Reply reply = Ask("/embed_sparse", {{"inputs", "ten"}, {name, value}});
    EXPECT_EQ(reply.status, 422) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(name));
  }
  EXPECT_EQ(Ask("/embed_sparse", {{"inputs", json::array()}}).status, 400);
  EXPECT_EQ(Ask("/embed_sparse", json::object()).status, 422);
}

TEST_F(TeiSparseTest, InfoTellsThePooling) {
  const auto info = [&](const char* model) {
    return Of(LocalHttpClient(http_->port()).Get("/info", {{"linserve-model", model}}))
        .parsed["model_type"];
  };
  EXPECT_EQ(info("words"), json({{"embedding", {{"pooling", "splade"}}}}));
  EXPECT_EQ(info("tokens"), json({{"embedding", {{"pooling", "mean"}}}}));
}

class TeiSparseRoomTest : public RestTest {
 protected:
  TeiSparseRoomTest()
      : RestTest({.grpc = {.inflight = {.max_bytes = 200'000}}, .sparse = "words"}) {}
};

TEST_F(TeiSparseRoomTest, ThereIsRoomForTheTextOfAllWeights) {
  const auto ask = [&](size_t texts) {
    const std::vector<std::string> inputs(texts, "ten");
    return Post("/embed_sparse", json{{"model", "words"}, {"inputs", inputs}}.dump());
  };
  EXPECT_EQ(ask(1).status, 200);
  EXPECT_THAT(ask(50).body, HasSubstr("max_inflight_bytes"));
}

}  // namespace
}  // namespace linserve
