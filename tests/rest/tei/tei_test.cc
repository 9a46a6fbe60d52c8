#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "rest/calls/vectors_json.h"
#include "rest/rest_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

// "tokens" gives (id, place, n, 1) for each id.
class TeiTest : public RestTest {
 protected:
  TeiTest()
      : RestTest({.dimensions = {2},
                  .text = true,
                  .marks = {.add_bos = true, .add_eos = true},
                  .prompts = {{"query", "the "}}}) {}

  // Asks about "tokens" by the header, for bodies that name no model.
  Reply Ask(const std::string& path, const json& body) const {
    return Post(path, body.dump(), {{"linserve-model", "tokens"}});
  }
};

TEST_F(TeiTest, EmbedsOnThreePathsTheModelThatBodyOrHeaderNames) {
  const Reply reply = Post("/embed", R"({"model": "tokens", "inputs": [7], "normalize": false})");
  EXPECT_EQ(reply.parsed, json({{7, 0, 1, 1}})) << reply.body;
  const json body = {{"inputs", {{7}}}, {"normalize", false}};
  for (const char* path : {"/", "/invocations", "/embed"}) {
    EXPECT_EQ(Ask(path, body).parsed, reply.parsed) << path;
  }
  const Reply unnamed = Post("/embed", body.dump());
  EXPECT_EQ(unnamed.status, 422) << unnamed.body;
  EXPECT_EQ(Ask("/embed", {{"inputs", {7}}, {"model", "nobody"}}).status, 404);
}

TEST_F(TeiTest, VectorsHaveLengthOneWhateverIsLeftOfThem) {
  const auto embed = [&](const json& options) {
    json body = {{"inputs", {{8, 6}}}};
    body.update(options);
    return Ask("/embed", body).parsed[0].get<std::vector<float>>();
  };
  // The mean of (8, 0, 2, 1) and (6, 1, 2, 1).
  EXPECT_THAT(embed({{"normalize", false}}), ElementsAre(7, 0.5F, 2, 1));
  EXPECT_THAT(embed({{"normalize", false}, {"dimensions", 2}}), ElementsAre(7, 0.5F));
  const float norm = std::sqrt(49.25F);
  EXPECT_THAT(embed({{"dimensions", 2}}),
              ElementsAre(FloatNear(7 / norm, 1e-6F), FloatNear(0.5F / norm, 1e-6F)));
  EXPECT_EQ(embed({{"dimensions", 4}}), embed(json::object()));
  for (const json& wrong : {json(0), json(-1), json(3), json(5), json(1.5), json("2")}) {
    const Reply reply = Ask("/embed", {{"inputs", {7}}, {"dimensions", wrong}});
    // These are numbers of dimensions, but not this model's.
    EXPECT_EQ(reply.status, 422) << wrong;
    EXPECT_THAT(reply.body, HasSubstr("'dimensions'")) << wrong;
  }
}

TEST_F(TeiTest, EmbedsAllTokens) {
  const Reply reply = Ask("/embed_all", {{"inputs", {{7, 9}, {5}}}});
  EXPECT_EQ(reply.parsed, json({{{7, 0, 2, 1}, {9, 1, 2, 1}}, {{5, 0, 1, 1}}})) << reply.body;
  for (const char* name : {"normalize", "dimensions"}) {
    EXPECT_EQ(Ask("/embed_all", {{"inputs", {7}}, {name, nullptr}}).status, 200) << name;
    EXPECT_THAT(Ask("/embed_all", {{"inputs", {7}}, {name, 1}}).body, HasSubstr(name));
  }
}

TEST_F(TeiTest, SimilarityIsTheCosineOfVectors) {
  const json texts = {"the server", "a", "the server"};
  const Reply reply = Ask(
      "/similarity", {{"inputs", {{"source_sentence", texts[0]}, {"sentences", {"a", texts[2]}}}}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json vectors = Ask("/embed", {{"inputs", texts}}).parsed;
  const auto one = vectors[0].get<std::vector<double>>();
  const auto other = vectors[1].get<std::vector<double>>();
  const double cosine = std::inner_product(one.begin(), one.end(), other.begin(), 0.0);
  EXPECT_THAT(reply.parsed.get<std::vector<float>>(),
              ElementsAre(FloatNear(static_cast<float>(cosine), 1e-5F), FloatNear(1, 1e-5F)));
  const Reply none =
      Ask("/similarity", {{"inputs", {{"source_sentence", "a"}, {"sentences", json::array()}}}});
  EXPECT_EQ(none.status, 400);
  EXPECT_EQ(none.parsed["error_type"], "Empty");
}

TEST_F(TeiTest, SimilarityTakesNoRoomForTheTextOfVectors) {
  constexpr int kTexts = 200;
  const auto in_flight = [&](const std::string& path, const json& body) {
    server_.tokens().Hold();
    std::thread caller([&] { EXPECT_EQ(Ask(path, body).status, 200); });
    server_.tokens().AwaitHeld(1);
    const double bytes = server_.Scrape()["linserve_inflight_bytes"];
    server_.tokens().LetGo();
    caller.join();
    return bytes;
  };
  const double embed = in_flight("/embed", {{"inputs", std::vector<std::string>(kTexts, "a")}});
  const double similarity = in_flight(
      "/similarity",
      {{"inputs",
        {{"source_sentence", "a"}, {"sentences", std::vector<std::string>(kTexts - 1, "a")}}}});
  constexpr int64_t kVectorBytes = 4 * sizeof(float);
  EXPECT_GT(embed - similarity,
            static_cast<double>(kTexts * (kJsonOfFloatByte - 1) * kVectorBytes));
}

TEST_F(TeiTest, PromptsStandBeforeTexts) {
  const auto embed = [&](const json& body) { return Ask("/embed", body); };
  const Reply plain = embed({{"inputs", {"the server", "the a"}}});
  const Reply prompted = embed({{"inputs", {"server", "a"}}, {"prompt_name", "query"}});
  EXPECT_EQ(prompted.status, 200) << prompted.body;
  EXPECT_EQ(prompted.body, plain.body);
  const Reply unknown = embed({{"inputs", "a"}, {"prompt_name", "passage"}});
  EXPECT_EQ(unknown.status, 422);
  EXPECT_THAT(unknown.body, HasSubstr("expected one of 'query'"));
  EXPECT_THAT(embed({{"inputs", {7}}, {"prompt_name", "query"}}).body,
              HasSubstr("a prompt stands before texts"));
}

class DefaultPrompt : public RestTest {
 protected:
  DefaultPrompt()
      : RestTest({.text = true,
                  .prompts = {{"query", "the "}, {"passage", "a "}},
                  .default_prompt = "query"}) {}

  std::string Embed(const json& inputs, const json& more = json::object()) const {
    json body = {{"inputs", inputs}, {"model", "tokens"}, {"normalize", false}};
    body.update(more);
    const Reply reply = Post("/embed", body.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.body;
  }
};

TEST_F(DefaultPrompt, StandsBeforeTheTextsOfWhoNamesNone) {
  const auto ids = [&](const std::string& text) {
    const Reply reply = Post("/tokenize", json({{"inputs", text}, {"model", "tokens"}}).dump());
    std::vector<int64_t> found;
    for (const json& token : reply.parsed[0]) found.push_back(token["id"]);
    return found;
  };
  const std::vector<int64_t> prompted = ids("server");
  EXPECT_EQ(Embed("server"), Embed({prompted}));
  EXPECT_NE(Embed("server", {{"prompt_name", "passage"}}), Embed("server"));
  EmbedCall call;
  call.model = "tokens";
  call.sequences.push_back({.id = "", .inputs = {}, .text = "server"});
  const auto answers = EmbeddingClient(server_.client_options()).Embed(call);
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ((*answers)[0].outputs.begin()->second.shape()[0], std::ssize(prompted));
}

TEST_F(TeiTest, TokensAreThoseThatAreComputedAndDecodeToTheirText) {
  const std::string text = "the  server \xC3\xA9\xE4\xBD\xA0 answers";
  const Reply reply = Ask("/tokenize", {{"inputs", {text, "a"}}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  ASSERT_EQ(reply.parsed.size(), 2U);
  const json& tokens = reply.parsed[0];
  json ids = json::array();
  size_t last = 0;
  for (const json& token : tokens) {
    ids.push_back(token["id"]);
    const bool mark = token == tokens.front() || token == tokens.back();
    EXPECT_EQ(token["special"], mark) << token;
    if (mark) continue;
    const auto start = token["start"].get<size_t>();
    const auto stop = token["stop"].get<size_t>();
    EXPECT_GE(start, last) << token;
    EXPECT_EQ(token["text"], text.substr(start, stop - start));
    last = stop;
  }
  EXPECT_EQ(last, text.size());
  EXPECT_EQ(tokens.front(), json({{"id", ids.front()},
                                  {"text", "<s>"},
                                  {"special", true},
                                  {"start", nullptr},
                                  {"stop", nullptr}}));
  EXPECT_EQ(Ask("/embed", {{"inputs", {ids}}}).body, Ask("/embed", {{"inputs", text}}).body);

  const Reply bare = Ask("/tokenize", {{"inputs", text}, {"add_special_tokens", false}});
  json inner = tokens;
  inner.erase(inner.size() - 1);
  inner.erase(0);
  EXPECT_EQ(bare.parsed[0], inner);
  const json words = Ask("/tokenize", {{"inputs", "the server"}}).parsed[0];
  json word_ids = json::array();
  for (const json& token : words) word_ids.push_back(token["id"]);
  EXPECT_EQ(Ask("/decode", {{"ids", word_ids}}).parsed, json({"the server"}));
  EXPECT_EQ(Ask("/decode", {{"ids", {word_ids}}, {"skip_special_tokens", false}}).parsed,
            json({"<s> the server</s>"}));
}

class TeiRoomTest : public RestTest {
 protected:
  TeiRoomTest() : RestTest({.grpc = {.inflight = {.max_bytes = 2'000'000}}, .text = true}) {}
};

TEST_F(TeiRoomTest, WhatManyIdsBecomeIsReservedBeforeItIsMade) {
  const json body = {{"model", "tokens"}, {"ids", std::vector<int64_t>(20'000, 5)}};
  const Reply refused = Post("/decode", body.dump());
  EXPECT_EQ(refused.status, 413) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("max_inflight_bytes"));
}

TEST_F(TeiTest, WhatTheTokenizerCannotTakeIsRefused) {
  EXPECT_THAT(Ask("/decode", {{"ids", {5, 1000000}}}).body, HasSubstr("not in the vocabulary"));
  EXPECT_THAT(Ask("/decode", {{"ids", "text"}}).body, HasSubstr("expected a JSON object"));
  EXPECT_THAT(Ask("/decode", {{"ids", std::vector<int64_t>(70'000, 5)}}).body,
              HasSubstr("too many token ids"));
  EXPECT_THAT(Ask("/tokenize", {{"inputs", {5, 6}}}).body, HasSubstr("expected a text"));
  const std::string large(24 << 10, 'a');
  EXPECT_EQ(Ask("/tokenize", {{"inputs", large}}).status, 200);
  const Reply none = Post("/tokenize", R"({"model": "floats", "inputs": "a"})");
  EXPECT_EQ(none.status, 422);
  EXPECT_THAT(none.body, HasSubstr("no tokenizer"));
}

TEST_F(TeiTest, WhatTheTokenizerAnswersIsNoInference) {
  EXPECT_EQ(Ask("/tokenize", {{"inputs", "a"}}).status, 200);
  EXPECT_EQ(Ask("/decode", {{"ids", {5, 1000000}}}).status, 422);
  const json stats = Get("/v2/models/tokens/stats").parsed["model_stats"];
  for (const json& version : stats) {
    EXPECT_EQ(version["inference_stats"]["fail"].value("count", 0), 0) << version;
    EXPECT_EQ(version["inference_stats"]["success"].value("count", 0), 0) << version;
  }
}

TEST_F(TeiTest, TextsAreCutWhereTheCallerAsksForIt) {
  std::string text;
  for (const char* word : {"server ", "a "}) {
    for (int64_t i = 0; i < kTestLongest; ++i) text += word;
  }
  json body = {{"inputs", text}};
  const Reply refused = Ask("/embed", body);
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.parsed["error_type"], "Validation");
  body["truncate"] = true;
  const Reply right = Ask("/embed", body);
  EXPECT_EQ(right.status, 200) << right.body;
  for (const char* side : {"Right", "right"}) {
    body["truncation_direction"] = side;
    EXPECT_EQ(Ask("/embed", body).body, right.body);
  }
  body["truncation_direction"] = "Left";
  const Reply left = Ask("/embed", body);
  EXPECT_EQ(left.status, 200) << left.body;
  EXPECT_NE(left.body, right.body);
  body["truncation_direction"] = "left";
  EXPECT_EQ(Ask("/embed", body).body, left.body);
  body["truncation_direction"] = "middle";
  EXPECT_EQ(Ask("/embed", body).status, 422);
}

TEST_F(TeiTest, TokenIdsAreCutAsTextsAre) {
  std::vector<int64_t> ids = Ids(kTestLongest + 1);
  json body = {{"inputs", {ids}}, {"normalize", false}};
  EXPECT_EQ(Ask("/embed", body).status, 422);
  body["truncate"] = true;
  const std::vector<int64_t> first(ids.begin(), ids.end() - 1);
  EXPECT_EQ(Ask("/embed", body).body,
            Ask("/embed", {{"inputs", {first}}, {"normalize", false}}).body);
}

TEST_F(TeiTest, WhatIsRefusedBeforeItIsReadHasTheSameForm) {
  const Reply large = Post("/embed", std::string(2 << 20, ' '));
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.parsed["error_type"], "Validation") << large.body;
  EXPECT_EQ(Get("/tokenize").parsed["error_type"], "Validation");
}

TEST_F(TeiTest, WhatIsForAnotherPathIsNotDropped) {
  for (const char* path : {"/embed_all", "/embed_sparse"}) {
    EXPECT_EQ(Ask(path, {{"inputs", {7}}, {"normalize", true}}).status, 422) << path;
  }
  const Reply reply = Ask("/embed", {{"inputs", {7}}, {"parameters", {{"normalize", false}}}});
  EXPECT_EQ(reply.parsed, json({{7, 0, 1, 1}})) << reply.body;
  // LangChain sends that.
  EXPECT_EQ(Ask("/embed", {{"inputs", {7}}, {"parameters", json::object()}}).status, 200);
  EXPECT_EQ(Ask("/embed", {{"inputs", {7}}, {"options", {{"wait_for_model", true}}}}).status, 200);
}

TEST_F(TeiTest, HealthIsForAnybodyAndTheStatusPageStaysWhereItIs) {
  for (const char* path : {"/health", "/ping", "/"}) EXPECT_EQ(Get(path).status, 200) << path;
  const auto page = Of(LocalHttpClient(http_->port()).Get("/", {{"Accept", "text/html"}}));
  EXPECT_THAT(page.body, HasSubstr("<html"));
}

}  // namespace
}  // namespace linserve
