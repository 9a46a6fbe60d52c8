#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "rest/rest_fixture.h"
#include "xds/data/orca/v3/orca_load_report.pb.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST_F(RestTest, InfersInJson) {
  json request = ThreeTokens();
  request["id"] = "7";
  const Reply reply = Post(kInfer, request.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.parsed["id"], "7");
  EXPECT_EQ(reply.parsed["model_name"], "tokens");
  EXPECT_EQ(reply.parsed["model_version"], "2");
  const json& output = reply.parsed["outputs"][0];
  EXPECT_EQ(output["name"], "y");
  EXPECT_EQ(output["datatype"], "FP32");
  EXPECT_EQ(output["shape"], json({1, 3, 4}));
  EXPECT_EQ(output["data"].get<std::vector<float>>(), ExpectedRows({5, 6, 7}));
}

TEST_F(RestTest, TellsTheLoadToProxiesThatBalanceByIt) {
  for (const int status : {200, 400}) {
    const Reply reply = Post(kInfer, status == 200 ? ThreeTokens().dump() : "{}");
    EXPECT_EQ(reply.status, status);
    const auto header = reply.headers.find("endpoint-load-metrics-bin");
    ASSERT_NE(header, reply.headers.end());
    std::string bytes;
    ASSERT_TRUE(absl::Base64Unescape(header->second, &bytes));
    xds::data::orca::v3::OrcaLoadReport report;
    ASSERT_TRUE(report.ParseFromString(bytes));
    EXPECT_GT(report.mem_utilization(), 0);
    EXPECT_TRUE(report.named_metrics().contains("queue_delay_seconds"));
  }
}

TEST_F(RestTest, TakesNestedArraysAndAVersion) {
  json request = ThreeTokens();
  request["inputs"][0]["data"] = {{5, 6, 7}};
  const Reply reply = Post("/v2/models/tokens/versions/1/infer", request.dump());
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.parsed["model_version"], "1");
}

TEST_F(RestTest, TakesMembersThatMayBeMissingForMissingWhereTheyAreNull) {
  const std::string input =
      R"("inputs":[{"name":"x","datatype":"INT64","shape":[1,2],"data":[5,6])";
  const Reply plain = Post(kInfer, "{" + input + "}]}");
  ASSERT_EQ(plain.status, 200) << plain.body;
  const Reply nulls = Post(kInfer, R"({"id":null,"parameters":null,"outputs":null,)" + input +
                                       R"(,"parameters":null}]})");
  EXPECT_EQ(nulls.status, 200) << nulls.body;
  EXPECT_EQ(nulls.parsed["outputs"], plain.parsed["outputs"]);
}

TEST_F(RestTest, InfersInBytesAfterTheJson) {
  const std::string bytes = BytesOf<int64_t>({5, 6, 7});
  json request = ThreeTokens();
  request["inputs"][0].erase("data");
  request["inputs"][0]["parameters"] = {{"binary_data_size", bytes.size()}};
  request["parameters"] = {{"binary_data_output", true}};
  const std::string header = request.dump();
  const Reply reply = Post(kInfer, header + bytes,
                           {{"Inference-Header-Content-Length", std::to_string(header.size())}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const auto length = reply.headers.find("Inference-Header-Content-Length");
  ASSERT_NE(length, reply.headers.end());
  const size_t json_size = std::stoul(length->second);
  const json parsed = json::parse(reply.body.substr(0, json_size));
  EXPECT_EQ(parsed["outputs"][0]["parameters"]["binary_data_size"], 3 * 4 * sizeof(float));
  EXPECT_EQ(reply.body.substr(json_size), BytesOf(ExpectedRows({5, 6, 7})));
}

TEST_F(RestTest, WritesNumbersOfEveryTypeInJson) {
  for (const char* datatype : {"FP32", "FP16", "BF16"}) {
    json request = ThreeTokens();
    request["parameters"] = {{"dtype", datatype}};
    const json output = Post(kInfer, request.dump()).parsed["outputs"][0];
    EXPECT_EQ(output["datatype"], datatype);
    ASSERT_EQ(output["data"].size(), 12U) << output;
    EXPECT_NEAR(output["data"][0].get<float>(), ExpectedRows({5, 6, 7})[0], 0.05) << datatype;
  }
}

TEST_F(RestTest, SaysWhatIsWrongWithARequest) {
  const auto expect = [&](const json& request, const std::string& part, int status = 400) {
    const Reply reply =
        Post(kInfer, request.is_string() ? request.get<std::string>() : request.dump());
    EXPECT_EQ(reply.status, status) << request;
    EXPECT_THAT(reply.parsed["error"].get<std::string>(), HasSubstr(part)) << request;
  };
  expect("", "the body is empty");
  expect("[1]", "not a JSON object");
  expect("{\"inputs\": [}", "not JSON: a syntax error at byte 13");
  expect("{\"else\": " + std::string(100000, '['), "nested more than 32 deep");
  expect("{\"inputs\": 1}", "expected \"inputs\", an array");
  expect("{\"id\": 1, \"inputs\": []}", "'id': expected a string");
  expect("{\"inputs\": [], \"parameters\": []}", "\"parameters\": expected an object");
  expect("{\"inputs\": [], \"parameters\": {\"a\": {}}}", "parameter 'a': expected a bool");
  expect("{\"inputs\": [], \"outputs\": {}}", "\"outputs\": expected an array");
  expect("{\"inputs\": [], \"outputs\": [1]}", "expected objects with a \"name\"");
  const auto with_input = [](const std::string& key, const json& value) {
    json request = ThreeTokens();
    request["inputs"][0][key] = value;
    return request;
  };
  for (const char* flag : {"1", "\"true\""}) {
    expect(R"({"inputs": [], "parameters": {"binary_data_output": )" + std::string(flag) + "}}",
           "'binary_data_output': expected a bool");
    expect(R"({"inputs": [], "outputs": [{"name": "y", "parameters": {"binary_data": )" +
               std::string(flag) + "}}]}",
           "'binary_data': expected a bool");
  }
  expect(with_input("name", 1), "'name': expected a string");
  expect(with_input("name", nullptr), "expected objects with \"name\"");
  expect(with_input("shape", "3"), "expected a \"shape\"");
  expect(with_input("shape", {1.5}), "something else than integers");
  expect(with_input("shape", {1, 4}), "mismatch");
  expect(with_input("datatype", "FP16"), "send them as binary data");
  expect(with_input("datatype", "BOOL"), "'5' is no such element");
  expect(with_input("data", {5, "six", 7}), "'\"six\"' is no such element");
  expect(with_input("data", nullptr), "'null' is no such element");
  expect(with_input("parameters", {{"binary_data_size", 24}}), "there is \"data\", too");
  expect(with_input("parameters", {{"binary_data_size", 1.8446744073709552e19}}),
         "no number of bytes");
  json negative = with_input("datatype", "UINT8");
  negative["inputs"][0]["data"] = {5, -1, 7};
  expect(negative, "'-1' is no such element");
}

TEST_F(RestTest, ChecksTheLengthOfTheJson) {
  const std::string body = ThreeTokens().dump();
  for (const char* length : {"x", "-1", "100000"}) {
    const Reply reply = Post(kInfer, body, {{"Inference-Header-Content-Length", length}});
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr("Inference-Header-Content-Length is"));
  }
  const Reply reply = Post(kInfer, body + "left",
                           {{"Inference-Header-Content-Length", std::to_string(body.size())}});
  EXPECT_THAT(reply.body, HasSubstr("4 bytes after the JSON belong to no input"));
}

TEST_F(RestTest, ErrorsBecomeHttpCodes) {
  EXPECT_EQ(Post("/v2/models/nobody/infer", ThreeTokens().dump()).status, 404);
  EXPECT_EQ(Post("/v2/models/late/infer", ThreeTokens().dump()).status, 503);
  server_.tokens().FailNext(absl::InternalError("broken"));
  EXPECT_EQ(Post(kInfer, ThreeTokens().dump()).status, 500);
  json request = ThreeTokens();
  request["parameters"] = {{"sequence_id", 5}};
  EXPECT_EQ(Post(kInfer, request.dump()).status, 501);
  EXPECT_EQ(Post(kInfer, std::string((1 << 20) + 1, ' ')).status, 413);
  EXPECT_EQ(Of(LocalHttpClient(http_->port())
                   .Post(
                       kInfer,
                       [](size_t offset, httplib::DataSink& sink) {
                         const std::string part(1 << 16, ' ');
                         sink.write(part.data(), part.size());
                         if (offset > (1 << 20)) sink.done();
                         return true;
                       },
                       "application/json"))
                .status,
            413);
  EXPECT_EQ(Of(LocalHttpClient(http_->port())
                   .Post(kInfer, httplib::MultipartFormDataItems{{"a", "b", "c", ""}}))
                .status,
            415);
  request["parameters"] = {{"timeout", INT64_MAX}};
  EXPECT_EQ(Post(kInfer, request.dump()).status, 200);
  request["parameters"] = {{"timeout", "soon"}};
  EXPECT_EQ(Post(kInfer, request.dump()).status, 400);
  EXPECT_EQ(Get("/v2/models").status, 404);
}

TEST_F(RestTest, DescribesTheServerAndItsModels) {
  EXPECT_EQ(Get("/v2").parsed["name"], "linserve");
  EXPECT_EQ(Get("/v2/models/tokens").parsed["inputs"][0]["shape"], json({-1, -1}));
  EXPECT_EQ(Get("/v2/models/tokens").parsed["versions"], json({"1", "2"}));
  EXPECT_EQ(Get("/v2/models/tokens/versions/1/config").parsed["input"][0]["data_type"],
            "TYPE_INT64");
  EXPECT_EQ(Get("/v2/models/tokens/ready").status, 200);
  EXPECT_EQ(Get("/v2/models/late/ready").status, 503);
  EXPECT_EQ(Get("/v2/models/nobody/ready").status, 404);
  EXPECT_EQ(Post(kInfer, ThreeTokens().dump()).status, 200);
  const json stats = Get("/v2/models/tokens/stats").parsed["model_stats"];
  ASSERT_EQ(stats.size(), 2U);
  EXPECT_EQ(stats[1]["inference_stats"]["success"]["count"], 1);
  EXPECT_EQ(Get("/v2/models/stats").parsed["model_stats"].size(), 3U);
  EXPECT_EQ(Get("/v1/models").parsed["data"].size(), 2U);
  EXPECT_EQ(Get("/v1/models/tokens").parsed["id"], "tokens");
  EXPECT_EQ(Get("/v1/models/nobody").parsed["error"]["type"], "invalid_request_error");
  EXPECT_EQ(Get("/v1/embeddings").status, 405);
  EXPECT_EQ(Post("/v1/models", "{}").headers.find("Allow")->second, "GET, HEAD, OPTIONS");
}

TEST_F(RestTest, LoadsAndUnloadsModels) {
  server_.WriteModel("extra");
  EXPECT_EQ(Post("/v2/repository/models/extra/load", "").status, 200);
  EXPECT_EQ(Get("/v2/models/extra/ready").status, 200);
  EXPECT_EQ(Post("/v2/repository/index", R"({"ready": true})").parsed.size(), 4U);
  EXPECT_EQ(Post("/v2/repository/models/extra/unload", "").status, 200);
  EXPECT_EQ(Get("/v2/models/extra/ready").status, 503);
  EXPECT_EQ(Post("/v2/repository/index", "").parsed.size(), 5U);
  EXPECT_EQ(Post("/v2/repository/models/nobody/load", "").status, 404);
  EXPECT_EQ(Post("/v2/repository/models/extra/load", R"({"parameters": {"config": "{}"}})").status,
            501);
}

TEST_F(RestTest, EchoesTheRequestIdOrTellsANewOne) {
  const auto id_of = [](const Reply& reply) {
    const auto found = reply.headers.find("x-request-id");
    return found == reply.headers.end() ? "" : found->second;
  };
  const std::string infer = ThreeTokens().dump();
  const std::string embed = R"({"inputs": [5], "model": "tokens"})";
  for (const auto& [path, body] : {std::pair{kInfer, infer},
                                   {"/embed", embed},
                                   {"/embed", "{"},
                                   {kInfer, "{"},
                                   {"/v2/models/nobody/infer", infer}}) {
    EXPECT_EQ(id_of(Post(path, body, {{"x-request-id", "seven"}})), "seven") << path;
    const std::string made = id_of(Post(path, body));
    EXPECT_NE(made, "") << path;
    EXPECT_NE(id_of(Post(path, body)), made) << path;
  }
  EXPECT_EQ(id_of(Of(LocalHttpClient(http_->port())
                         .Get("/v2/models/tokens", httplib::Headers{{"x-request-id", "8"}}))),
            "8");
}

TEST_F(RestTest, EchoesTheIdOfABodyThatCanStandInAHeader) {
  nlohmann::json request = ThreeTokens();
  const auto id_of = [&](const char* id, const httplib::Headers& headers = {}) {
    request["id"] = id;
    return Post(kInfer, request.dump(), headers).headers.find("x-request-id")->second;
  };
  EXPECT_EQ(id_of("in the body"), "in the body");
  EXPECT_EQ(id_of("in the body", {{"x-request-id", "in the header"}}), "in the header");
  EXPECT_THAT(id_of("7\r\nSet-Cookie: a=b"), testing::MatchesRegex("[0-9a-f]+-[0-9]+"));
  // It is that of a body with a fault, too.
  request["inputs"][0]["data"] = {"a"};
  EXPECT_EQ(id_of("42"), "42");
  EXPECT_THAT(Post(kInfer, request.dump()).body, HasSubstr("[request id: 42]"));
}

TEST_F(RestTest, AFaultNamesItsRequestAsTheLogDoes) {
  EXPECT_THAT(Post(kInfer, "{", {{"x-request-id", "nine"}}).body, HasSubstr("[request id: nine]"));
  const Reply reply = Post(kInfer, "{");
  const std::string id = reply.headers.find("x-request-id")->second;
  EXPECT_THAT(reply.body, HasSubstr("[request id: " + id + "]"));
}

TEST_F(RestTest, AnUnknownDatatypeIsNamedBesideThoseThatThereAre) {
  nlohmann::json request = ThreeTokens();
  request["inputs"][0]["datatype"] = "STRING";
  EXPECT_THAT(Post(kInfer, request.dump()).body,
              HasSubstr("input 'x': unknown datatype 'STRING', expected BOOL, UINT8"));
  request["inputs"][0]["datatype"] = "FP16";
  EXPECT_THAT(Post(kInfer, request.dump()).body, HasSubstr("FP16 elements cannot stand in JSON"));
}

TEST_F(RestTest, CountsTheRequestsThatItRefuses) {
  for (const char* path : {kInfer, "/v1/embeddings", "/embed"}) {
    EXPECT_THAT(Post(path, "{").status, AnyOf(400, 422)) << path;
  }
  const Scraped metrics = server_.Scrape();
  for (const char* rpc : {"/v2/models/infer", "/v1/embeddings", "/embed"}) {
    const std::string labels =
        R"({code="INVALID_ARGUMENT",model="",rpc=")" + std::string(rpc) + "\"}";
    EXPECT_EQ(metrics["linserve_requests_total" + labels], 1) << rpc;
  }
}

class RestOutputsTest : public RestTest {
 protected:
  RestOutputsTest() : RestTest({.text = true}) {}
};

TEST_F(RestOutputsTest, AreThoseThatAreAskedForInTheirOrder) {
  const auto outputs = [&](const std::vector<std::string>& asked) {
    json request = ThreeTokens();
    for (const std::string& name : asked) request["outputs"].push_back(json{{"name", name}});
    std::vector<std::string> given;
    const Reply reply = Post(kInfer, request.dump());
    for (const json& output : reply.parsed["outputs"]) given.push_back(output["name"]);
    return given;
  };
  for (const std::vector<std::string>& asked :
       {std::vector<std::string>{"tokens", "y"}, {"y", "tokens"}, {"y"}}) {
    EXPECT_EQ(outputs(asked), asked);
  }
  EXPECT_EQ(outputs({"tokens"}), (std::vector<std::string>{"tokens", "y"}));
}

TEST_F(RestTest, TakesTokenIdsByTheNameThatHuggingFacesExportsHave) {
  json request = ThreeTokens();
  request["inputs"][0]["name"] = "input_ids";
  EXPECT_EQ(Post(kInfer, request.dump()).parsed["outputs"],
            Post(kInfer, ThreeTokens().dump()).parsed["outputs"]);
}

TEST_F(RestTest, AModelOfAServerThatIsAboutToEndIsNotReadyAndAnswers) {
  EXPECT_EQ(Get("/v2/models/tokens/ready").status, 200);
  server_.grpc().SetServing(true);
  EXPECT_EQ(Get("/v2/models/tokens/ready").status, 200);
  server_.grpc().SetServing(false);
  EXPECT_EQ(Get("/v2/models/tokens/ready").status, 503);
  EXPECT_EQ(Post(kInfer, ThreeTokens().dump()).status, 200);
}

TEST_F(RestTest, NamesTheExtensionsThatItDoesNotHave) {
  for (const char* path :
       {"/v2/systemsharedmemory/status", "/v2/cudasharedmemory/region/a/register",
        "/v2/trace/setting", "/v2/models/tokens/trace/setting", "/v2/logging"}) {
    const Reply reply = Post(path, "{}");
    EXPECT_EQ(reply.status, 501) << path;
    EXPECT_THAT(reply.body, HasSubstr("is not supported")) << path;
  }
}

}  // namespace
}  // namespace linserve
