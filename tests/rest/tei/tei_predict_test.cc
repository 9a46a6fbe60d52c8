#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "rest/rest_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

double Sigmoid(double score) { return 1 / (1 + std::exp(-score)); }

// "moods" has three labels, and "ranker" has one: see ClassifierModel().
class TeiPredictTest : public RestTest {
 protected:
  TeiPredictTest()
      : RestTest({.text = true,
                  .prompts = {{"more", "twenty "}},
                  .classifiers = {{"moods", {"sad", "so-so", "\"glad\""}}, {"ranker", {"fits"}}}}) {
  }

  Reply Ask(const std::string& path, const std::string& model, const json& body) const {
    return Post(path, body.dump(), {{"linserve-model", model}});
  }

  // Returns the raw scores of "moods" for these texts, by label.
  json Moods(const json& inputs) const {
    const Reply reply = Ask("/predict", "moods", {{"inputs", inputs}, {"raw_scores", true}});
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.parsed;
  }
};

json Raw(double sum) {
  json all = json::array();
  for (const auto& [label, bias] :
       {std::pair{"\"glad\"", 3.0}, std::pair{"so-so", 2.0}, std::pair{"sad", 1.0}}) {
    all.push_back({{"label", label}, {"score", static_cast<float>(bias + sum)}});
  }
  return all;
}

// Compares lists of predictions, whose scores are floats.
void ExpectPredictions(const json& found, const json& expected) {
  ASSERT_EQ(found.size(), expected.size()) << found;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["label"], expected[i]["label"]);
    EXPECT_NEAR(found[i]["score"], expected[i]["score"], 1e-5) << found;
  }
}

TEST_F(TeiPredictTest, ScoresATextAPairAndAListOfBoth) {
  // [CLS] ten [SEP]: 1 + 10 + 2; and a second text counts tenfold, with its own [SEP].
  const json alone = Raw(0.13);
  const json pair = Raw(0.13 + 3.2);
  ExpectPredictions(Moods("ten"), alone);
  ExpectPredictions(Moods({"ten"}), alone);
  ExpectPredictions(Moods({"ten", "thirty"}), pair);
  const json both = Moods({{"ten"}, {"ten", "thirty"}});
  ASSERT_EQ(both.size(), 2U);
  ExpectPredictions(both[0], alone);
  ExpectPredictions(both[1], pair);
  const json one = Moods(json::array({json::array({"ten"})}));
  ASSERT_EQ(one.size(), 1U);
  ExpectPredictions(one[0], alone);
}

TEST_F(TeiPredictTest, ScoresAreProbabilitiesOfAllLabelsTogether) {
  const Reply reply = Ask("/predict", "moods", {{"inputs", "ten"}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const double sum = 1 + std::exp(-1) + std::exp(-2);
  ExpectPredictions(reply.parsed, {{{"label", "\"glad\""}, {"score", 1 / sum}},
                                   {{"label", "so-so"}, {"score", std::exp(-1) / sum}},
                                   {{"label", "sad"}, {"score", std::exp(-2) / sum}}});
  const Reply single = Ask("/predict", "ranker", {{"inputs", "ten"}});
  ExpectPredictions(single.parsed, {{{"label", "fits"}, {"score", Sigmoid(1.13)}}});
}

TEST_F(TeiPredictTest, RanksTextsByHowTheyFitTheQuery) {
  const json texts = {"ten", "thirty", "nobody", "twenty"};
  const Reply reply = Ask("/rerank", "ranker", {{"query", "ten"}, {"texts", texts}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::vector<std::pair<int, double>> expected = {{1, 3.2}, {3, 2.2}, {0, 1.2}, {2, 0.2}};
  ASSERT_EQ(reply.parsed.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const json& rank = reply.parsed[i];
    EXPECT_EQ(rank["index"], expected[i].first);
    EXPECT_NEAR(rank["score"], Sigmoid(1.13 + expected[i].second), 1e-6);
    EXPECT_FALSE(rank.contains("text"));
  }
  const Reply raw = Ask("/rerank", "ranker",
                        {{"query", "ten"},
                         {"texts", {"ten", "thirty"}},
                         {"raw_scores", true},
                         {"return_text", true}});
  EXPECT_NEAR(raw.parsed[0]["score"], 1.13 + 3.2, 1e-5);
  EXPECT_EQ(raw.parsed[0]["text"], "thirty");
  EXPECT_EQ(raw.parsed[1]["text"], "ten");
}

// Their scores are so high that all are 1 in the answer.
TEST_F(TeiPredictTest, RanksByWhatIsHigherWhereTheScoresAreEqual) {
  std::string tens;
  for (int i = 0; i < 30; ++i) tens += "ten ";
  const json texts = {tens, tens + "ten", tens + "twenty", tens + "ten ten ten"};
  const Reply reply = Ask("/rerank", "ranker", {{"query", "ten"}, {"texts", texts}});
  for (const auto& [place, index] :
       {std::pair(0, 3), std::pair(1, 2), std::pair(2, 1), std::pair(3, 0)}) {
    EXPECT_EQ(reply.parsed[place]["index"], index) << reply.body;
    EXPECT_EQ(reply.parsed[place]["score"], 1.0);
  }
}

TEST_F(TeiPredictTest, APromptStandsBeforeTheFirstOfTwoTexts) {
  const json plain = Moods({"twenty ten", "thirty"});
  const Reply reply =
      Ask("/predict", "moods",
          {{"inputs", {"ten", "thirty"}}, {"prompt_name", "more"}, {"raw_scores", true}});
  EXPECT_EQ(reply.parsed, plain) << reply.body;
  const Reply ranks =
      Ask("/rerank", "ranker",
          {{"query", "ten"}, {"texts", {"ten", "thirty"}}, {"prompt_name", "more"}});
  EXPECT_EQ(
      ranks.parsed,
      Ask("/rerank", "ranker", {{"query", "twenty ten"}, {"texts", {"ten", "thirty"}}}).parsed);
}

TEST_F(TeiPredictTest, WhatItDoesNotHaveIsRefused) {
  for (const auto& [name, value] :
       {std::pair("normalize", json(true)), std::pair("dimensions", json(1)),
        std::pair("parameters", json("top_k"))}) {
    const Reply reply = Ask("/predict", "moods", {{"inputs", "ten"}, {name, value}});
    EXPECT_EQ(reply.status, 422) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(name));
  }
}

TEST_F(TeiPredictTest, ParametersAreReadAndThoseOfOtherServersPassedOver) {
  const json raw = Raw(0.13);
  for (const json& others : {json::object(), json{{"top_k", 1}, {"function_to_apply", "none"}}}) {
    json parameters = {{"raw_scores", true}};
    parameters.update(others);
    const Reply reply = Ask("/predict", "moods", {{"inputs", "ten"}, {"parameters", parameters}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    ExpectPredictions(reply.parsed, raw);
  }
  EXPECT_EQ(Ask("/predict", "moods", {{"inputs", "ten"}, {"parameters", nullptr}}).status, 200);
}

TEST_F(TeiPredictTest, RanksDocumentsOfOtherServersClients) {
  const json body = {{"model", "ranker"}, {"query", "ten"}, {"documents", {"ten", "thirty"}}};
  const Reply reply = Post("/rerank", body.dump());
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.parsed, Post("/v1/rerank", body.dump()).parsed);
}

TEST_F(TeiPredictTest, WhereNoModelIsNamedTheOnlyOneOfItsKindAnswers) {
  const json question = {{"query", "ten"}, {"texts", {"ten", "twenty"}}};
  EXPECT_EQ(Post("/rerank", question.dump()).parsed, Ask("/rerank", "ranker", question).parsed);
  const json text = {{"inputs", "ten"}};
  EXPECT_EQ(Post("/predict", text.dump()).parsed, Ask("/predict", "moods", text).parsed);
}

TEST_F(TeiPredictTest, HeadersTellWhatWasComputedAndHowLongItTook) {
  const Reply reply = Ask("/rerank", "ranker", {{"query", "ten"}, {"texts", {"ten", "twenty"}}});
  EXPECT_EQ(reply.headers.find("x-compute-tokens")->second, "10");
  for (const char* name : {"x-compute-time", "x-total-time", "x-tokenization-time", "x-queue-time",
                           "x-inference-time"}) {
    ASSERT_EQ(reply.headers.count(name), 1U) << name;
    EXPECT_GE(std::stoll(reply.headers.find(name)->second), 0) << name;
  }
}

TEST_F(TeiPredictTest, EqualTextsStayInTheirOrder) {
  const Reply reply =
      Ask("/rerank", "ranker", {{"query", "ten"}, {"texts", {"ten", "ten", "ten"}}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reply.parsed[i]["index"], i);
}

TEST_F(TeiPredictTest, TheRootAnswersWhatTheModelIsFor) {
  EXPECT_EQ(Ask("/", "moods", {{"inputs", "ten"}}).parsed,
            Ask("/predict", "moods", {{"inputs", "ten"}}).parsed);
  const json question = {{"query", "ten"}, {"texts", {"ten", "twenty"}}};
  EXPECT_EQ(Ask("/invocations", "ranker", question).parsed,
            Ask("/rerank", "ranker", question).parsed);
  EXPECT_EQ(Ask("/", "tokens", {{"inputs", "a"}}).status, 200);
  json named = question;
  named["model"] = "ranker";
  EXPECT_EQ(Post("/", named.dump()).parsed, Ask("/rerank", "ranker", question).parsed);
}

TEST_F(TeiPredictTest, OneKindOfModelIsNotTakenForAnother) {
  const auto refused = [&](const std::string& path, const std::string& model, const json& body,
                           const std::string& why) {
    const Reply reply = Ask(path, model, body);
    EXPECT_EQ(reply.status, 424) << path;
    EXPECT_EQ(reply.parsed["error_type"], "Backend");
    EXPECT_THAT(reply.parsed["error"].get<std::string>(), HasSubstr(why));
  };
  const json question = {{"query", "ten"}, {"texts", {"ten"}}};
  refused("/predict", "tokens", {{"inputs", "a"}},
          "no classifier; it gives embeddings: use /embed");
  refused("/rerank", "tokens", question, "no re-ranker; it gives embeddings");
  refused("/rerank", "moods", question, "no re-ranker; it scores 3 classes: use /predict");
  refused("/embed", "moods", {{"inputs", "ten"}}, "no embedding model; it scores 3 classes");
  refused("/embed_all", "ranker", {{"inputs", "ten"}}, "no embedding model; it ranks texts");
}

TEST_F(TeiPredictTest, WhatIsNoTextNorPairIsRefused) {
  for (const char* inputs :
       {"7", "[]", "[[]]", "[7]", "[\"ten\", 7]", "[[\"ten\"], \"ten\"]", "null", "{}",
        R"(["ten", "ten", "ten"])", R"([["ten", "ten", "ten"]])", R"([["ten"], []])"}) {
    const Reply reply =
        Post("/predict", std::string(R"({"model": "moods", "inputs": )") + inputs + "}");
    EXPECT_EQ(reply.status, std::string(inputs) == "[]" ? 400 : 422) << inputs << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("inputs")) << inputs;
  }
  for (const char* body :
       {R"({"texts": ["ten"]})", R"({"query": "ten"})", R"({"query": 7, "texts": ["ten"]})",
        R"({"query": "ten", "texts": [7]})", R"({"query": "ten", "texts": [["ten"]]})"}) {
    EXPECT_EQ(Post("/rerank", body, {{"linserve-model", "ranker"}}).status, 422) << body;
  }
  EXPECT_EQ(Ask("/rerank", "ranker", {{"query", "ten"}, {"texts", json::array()}}).status, 400);
}

TEST_F(TeiPredictTest, LongTextsAreCutWhereThatIsAskedFor) {
  std::string text;
  for (int64_t i = 0; i < kTestLongest; ++i) text += "ten ";
  const json body = {{"inputs", {"twenty", text}}};
  EXPECT_EQ(Ask("/predict", "moods", body).status, 422);
  json cut = body;
  cut["truncate"] = true;
  EXPECT_EQ(Ask("/predict", "moods", cut).status, 200);
}

TEST_F(TeiPredictTest, InfoTellsTheLabels) {
  const auto info = [&](const char* model) {
    return Of(LocalHttpClient(http_->port()).Get("/info", {{"linserve-model", model}}))
        .parsed["model_type"];
  };
  EXPECT_EQ(info("ranker"),
            json({{"reranker", {{"id2label", {{"0", "fits"}}}, {"label2id", {{"fits", 0}}}}}}));
  EXPECT_EQ(info("moods")["classifier"]["id2label"]["2"], "\"glad\"");
  EXPECT_TRUE(info("tokens").contains("embedding"));
}

class TeiPredictRoomTest : public RestTest {
 protected:
  TeiPredictRoomTest()
      : RestTest({.grpc = {.inflight = {.max_bytes = 2'000'000}},
                  .classifiers = {{"ranker", {"fits"}}, {"many", {1000, "a class"}}}}) {}
};

TEST_F(TeiPredictRoomTest, ThereIsRoomForTheTextsOfAnAnswer) {
  json body = {{"model", "ranker"},
               {"query", "ten"},
               {"texts", std::vector<std::string>(4, std::string(15'000, 'a'))}};
  EXPECT_EQ(Post("/rerank", body.dump()).status, 200);
  body["return_text"] = true;
  const Reply refused = Post("/rerank", body.dump());
  EXPECT_EQ(refused.status, 413) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("max_inflight_bytes"));
}

TEST_F(TeiPredictRoomTest, ThereIsRoomForManyLabels) {
  const auto ask = [&](size_t texts) {
    const std::vector<std::vector<std::string>> inputs(texts, {"ten"});
    return Post("/predict", json{{"model", "many"}, {"inputs", inputs}}.dump());
  };
  EXPECT_EQ(ask(1).status, 200);
  EXPECT_THAT(ask(50).body, HasSubstr("max_inflight_bytes"));
}

}  // namespace
}  // namespace linserve
