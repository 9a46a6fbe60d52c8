#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/files/safetensors.h"
#include "support/http_client.h"
#include "system/programs/shared_server.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Serves a model of finite weights whose numbers overflow for the token 7, and for no other.
class NonfiniteResultTest : public SharedServerTest {
 protected:
  static void SetUpTestSuite() {
    const std::string repository = MakeRepository();
    InitModel(repository + "/bytes");
    const std::string weights = repository + "/bytes/model.safetensors";
    TensorMap tensors = ReadSafetensors(weights)->tensors;
    Tensor& tokens = tensors.at("token_emb.weight");
    std::vector<float> values(tokens.data<float>(), tokens.data<float>() + tokens.elements());
    std::fill_n(values.begin() + 7 * tokens.shape()[1], tokens.shape()[1] / 2, 3e38F);
    tokens = Tensor::FromFloats(tokens.shape(), values);
    ASSERT_TRUE(WriteSafetensors(weights, tensors).ok());
    Serve(repository);
  }

  // Posts JSON, and expects to be told what is wrong, with the code of the API.
  static void ExpectRefused(const std::string& path, const json& body) {
    httplib::Client client = LocalHttpClient(shared().http_port());
    const auto reply = client.Post(path, body.dump(), "application/json");
    ASSERT_TRUE(reply) << path;
    EXPECT_EQ(reply->status, path == "/embed" ? 424 : 400) << path << reply->body;
    EXPECT_THAT(reply->body, HasSubstr("it holds NaN at position")) << path;
  }

  static json InferRequest(const json& parameters) {
    return {
        {"parameters", parameters},
        {"inputs", {{{"name", "x"}, {"datatype", "INT64"}, {"shape", {1, 2}}, {"data", {1, 7}}}}}};
  }
};

TEST_F(NonfiniteResultTest, IsAFaultOfItsSequenceAlone) {
  EmbeddingClient client(shared().client_options());
  EmbedCall call;
  call.model = "bytes";
  for (const int64_t token : {1, 7, 2}) {
    call.sequences.push_back({std::to_string(token), {{"x", Tensor::FromInts({2}, {3, token})}}});
  }
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  for (const size_t fine : {0, 2}) EXPECT_TRUE((*results)[fine].status.ok());
  EXPECT_EQ((*results)[1].status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string((*results)[1].status.message()), HasSubstr("it holds NaN at position"));
}

TEST_F(NonfiniteResultTest, IsAFaultOfEveryRequestOverHttp) {
  ExpectRefused("/v2/models/bytes/infer", InferRequest(json::object()));
  ExpectRefused("/v2/models/bytes/infer", InferRequest({{"binary_data_output", true}}));
  for (const char* dtype : {"FP32", "FP16", "BF16", "INT8"}) {
    ExpectRefused("/v2/models/bytes/infer", InferRequest({{"dtype", dtype}}));
    ExpectRefused("/v2/models/bytes/infer",
                  InferRequest({{"dtype", dtype}, {"pooling", "mean"}, {"normalize", true}}));
  }
  ExpectRefused("/embed", {{"inputs", {1, 7}}});
  ExpectRefused("/v1/embeddings", {{"model", "bytes"}, {"input", {1, 7}}});
  ExpectRefused("/v1/embeddings",
                {{"model", "bytes"}, {"input", {1, 7}}, {"encoding_format", "base64"}});
}

TEST_F(NonfiniteResultTest, IsAFaultToTheClientProgramByEitherProtocol) {
  const TempDir directory;
  const std::string input = directory.File("in.safetensors");
  ASSERT_TRUE(WriteSafetensors(input, {{"input.x", Tensor::FromInts({1, 2}, {1, 7})}}).ok());
  for (const char* protocol : {"linserve", "oip"}) {
    const Outcome outcome =
        RunClient({"embed", input, "--batched", "--target", shared().target(), "--model", "bytes",
                   "--protocol", protocol, "--output", directory.File("out.safetensors")});
    EXPECT_NE(outcome.code, 0) << protocol;
    EXPECT_THAT(outcome.err + outcome.out, HasSubstr("it holds NaN at position")) << protocol;
  }
}

}  // namespace
}  // namespace linserve
