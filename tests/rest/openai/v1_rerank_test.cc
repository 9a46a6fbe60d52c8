#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "rest/rest_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// "moods" has two labels, and "ranker" has one: see ClassifierModel().
class V1RerankTest : public RestTest {
 protected:
  V1RerankTest()
      : RestTest(
            {.text = true, .classifiers = {{"moods", {"sad", "glad"}}, {"ranker", {"fits"}}}}) {}

  Reply Ask(json body) const {
    if (!body.contains("model")) body["model"] = "ranker";
    return Post("/v1/rerank", body.dump());
  }
};

TEST_F(V1RerankTest, GivesTheBestDocumentsWithTheirScores) {
  const json documents = {"ten", json{{"text", "thirty"}}, "twenty"};
  for (const char* path : {"/v1/rerank", "/v2/rerank"}) {
    const Reply reply =
        Post(path, json{{"model", "ranker"}, {"query", "ten"}, {"documents", documents}}.dump());
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json& results = reply.parsed["results"];
    ASSERT_EQ(results.size(), 3U);
    for (const auto& [place, index, text, id] :
         {std::tuple(0, 1, "thirty", 30), std::tuple(1, 2, "twenty", 20),
          std::tuple(2, 0, "ten", 10)}) {
      EXPECT_EQ(results[place]["index"], index);
      EXPECT_EQ(results[place]["document"], json({{"text", text}}));
      EXPECT_NEAR(results[place]["relevance_score"], 1 / (1 + std::exp(-1.13 - 0.1 * (id + 2))),
                  1e-6);
    }
    EXPECT_EQ(reply.parsed["model"], "ranker");
    EXPECT_EQ(reply.parsed["usage"], json({{"prompt_tokens", 15}, {"total_tokens", 15}}));
  }
}

TEST_F(V1RerankTest, GivesNoMoreThanIsAskedFor) {
  const json question = {{"query", "ten"}, {"documents", {"ten", "thirty", "twenty"}}};
  json two = question;
  two.update({{"top_n", 2}, {"return_documents", false}});
  const json results = Ask(two).parsed["results"];
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0]["index"], 1);
  EXPECT_FALSE(results[0].contains("document"));
  for (const json& any : {json(nullptr), json(100)}) {
    json all = question;
    all["top_n"] = any;
    EXPECT_EQ(Ask(all).parsed["results"].size(), 3U) << any;
  }
}

TEST_F(V1RerankTest, SaysWhatIsWrongInOpenAisWords) {
  const auto refused = [&](const json& change, const std::string& parameter, const std::string& why,
                           int status = 400) {
    json body = {{"query", "ten"}, {"documents", {"ten"}}};
    body.merge_patch(change);
    const Reply reply = Ask(body);
    EXPECT_EQ(reply.status, status) << change;
    EXPECT_THAT(reply.parsed["error"]["message"].get<std::string>(), HasSubstr(why)) << change;
    const json& named = reply.parsed["error"]["param"];
    EXPECT_EQ(named, parameter.empty() ? json() : json(parameter)) << change;
  };
  refused({{"query", nullptr}}, "query", "expected a JSON object with 'query'");
  refused({{"query", 7}}, "query", "'query': expected a text");
  refused({{"documents", json::array()}}, "documents", "expected a JSON object with");
  for (const json& wrong :
       {json("ten"), json({7}), json({{{"txt", "ten"}}}), json({{{"text", 7}}}), json({{"ten"}})}) {
    refused({{"documents", wrong}}, "documents", "'documents': expected a list of texts");
  }
  for (const json& wrong : {json(0), json(-1), json(1.5), json("2")}) {
    refused({{"top_n", wrong}}, "top_n", "'top_n': expected an integer");
  }
  refused({{"return_documents", 1}}, "return_documents", "'return_documents'");
  refused({{"model", "nobody"}}, "model", "nobody", 404);
  refused({{"model", "moods"}}, "", "no re-ranker; it scores 2 classes", 400);
}

TEST_F(V1RerankTest, ScoresPairsAsVllmDoes) {
  const auto scores = [&](const json& first, const json& second) {
    const Reply reply =
        Post("/v1/score", json{{"model", "ranker"}, {"text_1", first}, {"text_2", second}}.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<double> found;
    for (const json& one : reply.parsed["data"]) found.push_back(one["score"]);
    return found;
  };
  const double of_thirty = scores("ten", "thirty")[0];
  const double of_twenty = scores("ten", "twenty")[0];
  EXPECT_NEAR(of_thirty, 1 / (1 + std::exp(-1.13 - 0.1 * 32)), 1e-6);
  EXPECT_EQ(scores("ten", {"thirty", "twenty"}), (std::vector{of_thirty, of_twenty}));
  EXPECT_EQ(scores({"ten", "ten"}, {"thirty", "twenty"}), (std::vector{of_thirty, of_twenty}));
  EXPECT_EQ(scores({"ten", "twenty"}, "thirty")[0], of_thirty);
  for (const json& wrong :
       {json{{"text_1", "a"}}, json{{"text_1", {"a", "b"}}, {"text_2", {"a", "b", "c"}}},
        json{{"text_1", "a"}, {"text_2", {1, 2}}}}) {
    json body = wrong;
    body["model"] = "ranker";
    const Reply reply = Post("/score", body.dump());
    EXPECT_EQ(reply.status, 400) << wrong;
    EXPECT_EQ(reply.parsed["error"]["type"], "invalid_request_error") << reply.body;
  }
}

}  // namespace
}  // namespace linserve
