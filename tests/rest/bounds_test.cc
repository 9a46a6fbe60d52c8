// What a caller chooses is bounded, field by field.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rest/oip/infer_json.h"
#include "rest/rest_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMostSequences = 8;

class RestBounds : public RestTest {
 protected:
  RestBounds()
      : RestTest({.grpc = {.limits = {.max_sequences_per_request = kMostSequences}},
                  .model_control = true,
                  .text = true,
                  .classifiers = {{"ranker", {"fits"}}}}) {}

  ~RestBounds() override { EXPECT_TRUE(Serves(server_)); }

  // Returns what a refusal says, in whichever form.
  static std::string MessageIn(const Reply& reply) {
    const json error = reply.parsed.value("error", json());
    return error.is_object() ? error["message"].get<std::string>() : error.get<std::string>();
  }

  void ExpectRefused(const std::string& path, const std::string& body, const std::string& part,
                     int status = 400) const {
    SCOPED_TRACE(path + " " + body.substr(0, 200));
    const Reply reply = Post(path, body);
    ASSERT_EQ(reply.status, status) << reply.body;
    EXPECT_THAT(MessageIn(reply), HasSubstr(part));
    EXPECT_LE(MessageIn(reply).size(), 1024U);
  }
};

// Return the status of a reply to a body that is no request, and to one of too many sequences:
// text-embeddings-inference has its own.
int CodeOfFaults(const std::string& path) { return path.starts_with("/v") ? 400 : 422; }
int CodeOfTooMany(const std::string& path) { return path.starts_with("/v") ? 400 : 422; }

std::string Repeated(size_t count, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += (i == 0 ? "" : ",") + text;
  return all;
}

// Makes so many names that differ.
std::string Named(size_t count, const std::string& before, const std::string& after) {
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    all += (i == 0 ? "" : ",") + before + std::to_string(i) + after;
  }
  return all;
}

json InputOf(const json& shape, const json& data, const std::string& datatype = "INT64") {
  return {{"inputs", {{{"name", "x"}, {"datatype", datatype}, {"shape", shape}, {"data", data}}}}};
}

TEST_F(RestBounds, AnId) {
  json request = ThreeTokens();
  request["id"] = std::string(kMaxIdBytes, 'a');
  EXPECT_EQ(Post(kInfer, request.dump()).parsed["id"], request["id"]);
  for (const size_t size : {kMaxIdBytes + 1, 1000 * kMaxIdBytes}) {
    request["id"] = std::string(size, 'a');
    ExpectRefused(kInfer, request.dump(), "expected at most 128");
  }
  // The header is a convenience, which proxies add: one that is too long is overlooked.
  request["id"] = "7";
  const Reply reply =
      Post(kInfer, request.dump(), {{"x-request-id", std::string(kMaxIdBytes + 1, 'a')}});
  EXPECT_EQ(reply.status, 200) << reply.body;
}

TEST_F(RestBounds, ANameWhereverItStands) {
  const std::string infer = R"("inputs":[{"name":"x","datatype":"INT64","shape":[1,1],"data":[1])";
  const std::string pair = R"({"inputs":{"source_sentence":"a","sentences":["b"]},)";
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {kInfer, R"({"inputs":[{"name":"NAME","datatype":"INT64","shape":[1],"data":[1]}]})"},
           {kInfer, R"({"inputs":[{"name":"x","datatype":"NAME","shape":[1],"data":[1]}]})"},
           {kInfer, "{" + infer + R"(,"parameters":{"NAME":1}}]})"},
           {kInfer, "{" + infer + R"(}],"outputs":[{"name":"NAME"}]})"},
           {kInfer, "{" + infer + R"(}],"outputs":[{"name":"y","parameters":{"NAME":1}}]})"},
           {kInfer, "{" + infer + R"(}],"parameters":{"NAME":1}})"},
           {"/v2/repository/models/extra/load", R"({"parameters":{"NAME":1}})"},
           {"/v1/embeddings", R"({"input":[1],"model":"NAME"})"},
           {"/v1/embeddings", R"({"input":[1],"encoding_format":"NAME"})"},
           {"/embed", R"({"inputs":[1],"model":"NAME"})"},
           {"/v1/embeddings", R"({"input":[1],"truncate":"NAME"})"},
           {"/embed", R"({"inputs":[1],"truncation_direction":"NAME"})"},
           {"/embed", R"({"inputs":[1],"prompt_name":"NAME"})"},
           {"/embed_all", R"({"inputs":[1],"model":"NAME"})"},
           {"/similarity", pair + R"("model":"NAME"})"},
           {"/similarity", pair + R"("parameters":{"prompt_name":"NAME"}})"},
           {"/tokenize", R"({"inputs":"a","prompt_name":"NAME"})"},
           {"/tokenize", R"({"inputs":"a","model":"NAME"})"},
           {"/decode", R"({"ids":[1],"model":"NAME"})"},
           {"/predict", R"({"inputs":"a","model":"NAME"})"},
           {"/rerank", R"({"query":"a","texts":["b"],"model":"NAME"})"},
           {"/v1/rerank", R"({"query":"a","documents":["b"],"model":"NAME"})"}}) {
    const auto named = [body = body](size_t size) {
      std::string text = body;
      return text.replace(text.find("NAME"), 4, std::string(size, 'n'));
    };
    EXPECT_THAT(Post(path, named(kMaxIdBytes)).body, Not(HasSubstr("bytes, expected"))) << body;
    for (const size_t size : {kMaxIdBytes + 1, 1000 * kMaxIdBytes}) {
      ExpectRefused(path, named(size), std::to_string(size) + " bytes, expected at most 128",
                    CodeOfFaults(path));
    }
  }
}

TEST_F(RestBounds, AShape) {
  constexpr int64_t kMost = INT64_MAX;
  constexpr int64_t kLarge = int64_t{1} << 62;
  for (const json& shape : std::vector<json>{{kLarge, 0},
                                             {0, kLarge},
                                             {kLarge, 0, kLarge},
                                             {kMost, 0},
                                             {0, kMost, kMost},
                                             {-1, 0},
                                             {-1, -1},
                                             {1, -3},
                                             {kMost, kMost},
                                             {kMost, 2},
                                             {int64_t{1} << 32, int64_t{1} << 32},
                                             {kMostSequences + 1, 0},
                                             {uint64_t{1} << 63}}) {
    ExpectRefused(kInfer, InputOf(shape, json::array()).dump(), "shape");
  }
  ExpectRefused(kInfer, InputOf({0, 0}, json::array()).dump(), "no sequences");
  ExpectRefused(kInfer, InputOf({kMostSequences, 0}, json::array()).dump(), "sequences are empty");
  ExpectRefused(kInfer, InputOf(json::array(), 5).dump(), "x");
  const auto ones = [](size_t axes) { return "[" + Repeated(axes, "1") + "]"; };
  for (const size_t axes : {size_t{kMaxAxes} + 1, size_t{1000} * kMaxAxes}) {
    ExpectRefused(kInfer, InputOf(json::parse(ones(axes)), 5).dump(), "expected at most 32");
  }
  ExpectRefused(kInfer, InputOf(json::parse(ones(kMaxAxes)), 5).dump(), "x");
}

TEST_F(RestBounds, TheElementsOfAnInput) {
  for (const char* datatype : {"INT64", "INT8", "UINT64", "UINT16", "FP32"}) {
    ExpectRefused(kInfer, InputOf({1, 3}, {5, 6}, datatype).dump(), "mismatch");
    ExpectRefused(kInfer, InputOf({1, 3}, {5, 6, 7, 8}, datatype).dump(), "mismatch");
    ExpectRefused(kInfer, InputOf({1, 3}, json::array(), datatype).dump(), "mismatch");
  }
  const std::string long_number(100'000, '1');
  for (const std::string& element : std::vector<std::string>{
           long_number, "-" + long_number, "0." + long_number, "1e" + long_number, "1e999"}) {
    std::string body = InputOf({1, 1}, "ELEMENT").dump();
    body.replace(body.find("\"ELEMENT\""), 9, element);
    ExpectRefused(kInfer, body, "is no such element");
  }
}

TEST_F(RestBounds, InputsOutputsAndParameters) {
  const std::string input = R"({"name":"x","datatype":"INT64","shape":[1,1],"data":[1])";
  for (const size_t count : {kMaxTensors + 1, 100 * kMaxTensors}) {
    ExpectRefused(kInfer, R"({"inputs":[)" + Repeated(count, input + "}") + "]}",
                  "\"inputs\": expected at most 64");
    ExpectRefused(
        kInfer,
        R"({"inputs":[)" + input + R"(}],"outputs":[)" + Repeated(count, R"({"name":"y"})") + "]}",
        "\"outputs\": expected at most 64");
  }
  ExpectRefused(kInfer, R"({"inputs":[)" + Repeated(kMaxTensors, input + "}") + "]}", "'x'");
  const auto parameters = [](size_t count) {
    return R"("parameters":{)" + Named(count, "\"p", "\":1") + "}";
  };
  for (const size_t count : {kMaxParameters, kMaxParameters + 1, 100 * kMaxParameters}) {
    for (const std::string& body :
         {R"({"inputs":[)" + input + "}]," + parameters(count) + "}",
          R"({"inputs":[)" + input + "," + parameters(count) + "}]}",
          R"({"inputs":[)" + input + R"(}],"outputs":[{"name":"y",)" + parameters(count) + "}]}"}) {
      if (count > kMaxParameters) {
        ExpectRefused(kInfer, body, "\"parameters\": expected at most 64");
      } else {
        EXPECT_EQ(Post(kInfer, body).status, 200) << body;
      }
    }
    ExpectRefused("/v2/repository/models/extra/load", "{" + parameters(count) + "}",
                  "without overrides", 501);
  }
}

TEST_F(RestBounds, Sequences) {
  struct List {
    std::string path;
    std::string before;
    std::string one;
    std::string after = "]}";
    size_t most{kMostSequences};
    std::string model{"tokens"};
  };
  for (const List& list : std::vector<List>{
           {"/v1/embeddings", R"("input":[)", "[1]"},
           {"/v1/embeddings", R"("input":[)", "\"a\""},
           {"/embed", R"("inputs":[)", "[1]"},
           {"/embed", R"("inputs":[)", "\"a\""},
           {"/embed_all", R"("inputs":[)", "[1]"},
           {"/tokenize", R"("inputs":[)", "\"a\""},
           {"/decode", R"("ids":[)", "[1]"},
           // The sentence that others are compared with is a sequence, too.
           {"/similarity", R"("inputs":{"source_sentence":"a","sentences":[)", "\"a\"", "]}}",
            kMostSequences - 1},
           {"/predict", R"("inputs":[)", "[\"a\"]", "]}", kMostSequences, "ranker"},
           {"/rerank", R"("query":"a","texts":[)", "\"a\"", "]}", kMostSequences, "ranker"},
           {"/v1/rerank", R"("query":"a","documents":[)", "\"a\"", "]}", kMostSequences,
            "ranker"}}) {
    const auto body = [&](size_t count) {
      return R"({"model":")" + list.model + R"(",)" + list.before + Repeated(count, list.one) +
             list.after;
    };
    EXPECT_EQ(Post(list.path, body(list.most)).status, 200) << list.path << " " << list.one;
    for (const size_t count : {list.most + 1, 1000 * list.most}) {
      ExpectRefused(list.path, body(count), "more than " + std::to_string(list.most),
                    CodeOfTooMany(list.path));
    }
  }
}

TEST_F(RestBounds, AKeyThatMattersStandsOnce) {
  ExpectRefused(kInfer, R"({"inputs":[],"inputs":[]})", "'inputs' is given more than once");
  ExpectRefused(kInfer, R"({"id":"a","id":"b","inputs":[]})", "'id' is given more than once");
  ExpectRefused(kInfer, R"({"inputs":[{"name":"x","name":"x"}]})",
                "'name' is given more than once");
  ExpectRefused(kInfer, R"({"parameters":{"a":1,"a":1},"inputs":[]})",
                "parameter 'a' is given more than once");
  ExpectRefused("/embed", R"({"inputs":[1],"inputs":[2]})", "'inputs' is given more than once",
                422);
  ExpectRefused("/v1/embeddings", R"({"input":[1],"model":"tokens","model":"tokens"})",
                "'model' is given more than once");
  // Clients send what servers do not know, however often.
  EXPECT_EQ(Post("/v1/embeddings",
                 R"({"user":"a","input":[1],"model":"tokens","user":{"a":[{}]},"timeout":1.5})")
                .status,
            200);
}

TEST_F(RestBounds, WhatARefusalRepeatsOfTheRequest) {
  const std::string name(kMaxIdBytes, 'n');
  const std::string large(20'000, 'n');
  const auto names = [](size_t count) {
    return R"({"inputs":[)" +
           Named(count, R"({"name":")" + std::string(100, 'n'),
                 R"(","datatype":"INT64","shape":[1,1],"data":[1]})") +
           "]}";
  };
  ExpectRefused(kInfer, names(2000), "expected at most 64");
  ExpectRefused(kInfer, names(60), "unexpected inference input 'nnn");
  for (const char* input : {"x", "text"}) {
    ExpectRefused(kInfer,
                  json{{"inputs",
                        {{{"name", input},
                          {"datatype", name},
                          {"shape", {1}},
                          {"parameters", {{"binary_data_size", 0}}}}}}}
                      .dump(),
                  "nnn");
  }
  json request = ThreeTokens();
  request["outputs"] = {{{"name", name}}};
  ExpectRefused(kInfer, request.dump(), "nnn");
  request.erase("outputs");
  request["parameters"] = {{"sequence_id", large}};
  ExpectRefused(kInfer, request.dump(), "");
  ExpectRefused(kInfer, json{{large, 1}, {"inputs", 1}}.dump(), "expected \"inputs\"");
  ExpectRefused("/embed", json{{"inputs", {1}}, {"model", name}}.dump(), "nnn", 404);
  ExpectRefused("/v1/embeddings", json{{"input", {1, large}}}.dump(), "nnn");
  ExpectRefused("/v2/models/" + std::string(3000, 'n') + "/infer", request.dump(), "nnn", 404);
  ExpectRefused("/v2/models/tokens/versions/" + std::string(3000, '0') + "9/infer",
                ThreeTokens().dump(), "version 9 is not found", 404);
}

TEST_F(RestBounds, HalfACharacterIsNamedWhereverItStands) {
  const std::string lone = R"(a\ud800)";
  const std::string bytes = "a\xff";
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {lone, "a lone surrogate, \\ud800"}, {bytes, "not UTF-8 at byte"}}) {
    const std::string input = R"([{"name":"x","datatype":"INT64","shape":[1,1],"data":[1]}])";
    ExpectRefused(kInfer, R"({"id":")" + text + R"(","inputs":)" + input + "}", part);
    ExpectRefused(kInfer, R"({")" + text + R"(":1,"inputs":)" + input + "}", part);
    ExpectRefused(kInfer, R"({"parameters":{")" + text + R"(":1},"inputs":)" + input + "}", part);
    ExpectRefused(kInfer, R"({"parameters":{"a":")" + text + R"("},"inputs":)" + input + "}", part);
    ExpectRefused(kInfer, R"({"inputs":)" + input + R"(,"outputs":[{"name":")" + text + "\"}]}",
                  part);
    ExpectRefused(
        kInfer,
        R"({"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":[")" + text + "\"]}]}",
        part);
    ExpectRefused("/embed", R"({"model":"tokens","inputs":")" + text + "\"}", part, 422);
    ExpectRefused("/embed", R"({"model":"tokens","inputs":["b",")" + text + "\"]}", part, 422);
    ExpectRefused("/v1/embeddings", R"({"model":")" + text + R"(","input":[1]})", part);
    ExpectRefused("/v1/embeddings", R"({"model":"tokens","input":[1],"user":[")" + text + "\"]}",
                  part);
    ExpectRefused("/v2/repository/index", R"({")" + text + R"(":1})", part);
    ExpectRefused("/v2/repository/models/extra/load", R"({"parameters":{")" + text + R"(":1}})",
                  part);
  }
  // Python's json.dumps() writes a whole character beyond 16 bits so.
  EXPECT_EQ(Post("/embed", R"({"model":"tokens","inputs":"a\ud83d\ude00"})").status, 200);
}

class RestAnswerBounds : public RestTest {
 protected:
  RestAnswerBounds()
      : RestTest(
            {.grpc = {.inflight = {.max_bytes = 1'000'000, .max_bytes_per_caller = 1'000'000}}}) {}
};

TEST_F(RestAnswerBounds, AnAnswerHasRoomForItsTextBeforeItIsComputed) {
  // The rows of these tokens have 192 kB. In JSON they may have four times as much.
  json request = InputOf({1, 12000}, std::vector<int>(12000, 1));
  const Reply refused = Post(kInfer, request.dump());
  EXPECT_EQ(refused.status, 413) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("send less at once"));
  EXPECT_EQ(server_.tokens().computed(), 0);
  request["parameters"] = {{"binary_data_output", true}};
  EXPECT_EQ(Post(kInfer, request.dump()).status, 200);
  // Padding has a text, too.
  request.erase("parameters");
  request["inputs"].push_back(
      {{"name", "lengths"}, {"datatype", "INT64"}, {"shape", {1}}, {"data", {1}}});
  EXPECT_EQ(Post(kInfer, request.dump()).status, 413);
}

TEST_F(RestAnswerBounds, EverySequenceTakesItsPlace) {
  server_.tokens().Hold();
  const std::string body = R"({"model":"tokens","inputs":[)" + Repeated(200, "[1]") + "]}";
  std::thread caller([&] { EXPECT_EQ(Post("/embed", body).status, 200); });
  EXPECT_TRUE(server_.tokens().WaitForStarted(1));
  EXPECT_GT(server_.Scrape()["linserve_inflight_bytes"], 200 * 1000);
  server_.tokens().LetGo();
  caller.join();
  const Reply refused =
      Post("/embed", R"({"model":"tokens","inputs":[)" + Repeated(1000, "[1]") + "]}");
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.parsed["error_type"], "Validation");
}

}  // namespace
}  // namespace linserve
