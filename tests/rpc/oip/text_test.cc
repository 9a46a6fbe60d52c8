#include <grpcpp/grpcpp.h>

#include <atomic>
#include <map>

#include "rpc/oip/infer_requests.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// tests/data/text/encoded.json has the ids of this text.
const std::string kText = "the server answers";
const std::vector<int64_t> kIds = {24, 73, 9, 3, 6, 12, 5, 30, 21, 5};
const std::string kOther = "a line and\ttabs";
const std::vector<int64_t> kOtherIds = {3, 6, 3, 11, 28, 4, 37, 0, 7, 6, 31, 5};

NamedSequence Text(const std::string& id, const std::string& text) { return {id, {}, text}; }

// Makes a text that is longer than the test model takes.
std::string LongText() {
  std::string text;
  for (int64_t i = 0; i <= kTestLongest; ++i) text += kText + " ";
  return text;
}

class TextTest : public ::testing::Test {
 protected:
  explicit TextTest(const TokenizerOptions& marks = {}) : server_({.text = true, .marks = marks}) {}

  std::vector<SequenceResult> Embed(const EmbedCall& call, Protocol protocol) {
    ClientOptions options = server_.client_options();
    options.protocol = protocol;
    auto results = EmbeddingClient(options).Embed(call);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<SequenceResult>(9);
  }

  TestServer server_;
};

TEST_F(TextTest, ATextIsItsTokenIdsByEitherProtocol) {
  for (const Protocol protocol : {Protocol::kLinserve, Protocol::kOip}) {
    const auto results = Embed(CallOf("tokens", {Text("a", kText), Text("b", kOther)}), protocol);
    EXPECT_EQ(results[0].id, "a");
    EXPECT_EQ(results[0].tokens, 10);
    EXPECT_EQ(Values(results[0].outputs.at("y")), ExpectedRows(kIds));
    EXPECT_EQ(results[1].tokens, 12);
    EXPECT_EQ(Values(results[1].outputs.at("y")), ExpectedRows(kOtherIds));
  }
}

TEST_F(TextTest, ALongTextOfTheOpenInferenceProtocolIsReadAsOne) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += kText + " ";  // 19 KB, and thrice that
  const NamedSequence one = Text("", text);
  const auto native = Embed(CallOf("tokens", {one, one, one}), Protocol::kLinserve);
  const auto oip = Embed(CallOf("tokens", {one, one, one}), Protocol::kOip);
  EXPECT_EQ(oip[2].tokens, native[2].tokens);
  EXPECT_EQ(Values(oip[2].outputs.at("y")), Values(native[2].outputs.at("y")));
}

TEST_F(TextTest, TextsAndTokenIdsGoTogetherInOneRequest) {
  const auto results =
      Embed(CallOf("tokens", {Tokens("ids", kIds), Text("text", kText)}), Protocol::kLinserve);
  EXPECT_EQ(Values(results[0].outputs.at("y")), Values(results[1].outputs.at("y")));
}

TEST_F(TextTest, TheTimeOfEachTextIsMeasured) {
  Embed(CallOf("tokens", {Text("a", kText), Tokens("b", kIds), Text("c", kOther), Text("d", "")}),
        Protocol::kLinserve);
  const Scraped scraped = server_.Scrape();
  EXPECT_EQ(scraped[R"(linserve_tokenize_seconds_count{model="tokens",version="2"})"], 2);
  EXPECT_GT(scraped[R"(linserve_tokenize_seconds_sum{model="tokens",version="2"})"], 0);
}

TEST_F(TextTest, AFaultOfOneTextIsItsOwnResult) {
  v1::EmbedRequest request;
  request.set_model("tokens");
  request.add_sequences()->set_text(kText);
  request.add_sequences()->set_text("");
  request.add_sequences()->set_text(LongText());
  request.add_sequences()->set_text(std::string((1 << 20) + 1, 'a'));
  v1::Sequence& both = *request.add_sequences();
  both.set_text(kText);
  both.add_token_ids(1);
  const auto stub = server_.NewStub();
  grpc::ClientContext context;
  const auto reader = stub->Embed(&context, request);
  std::map<uint32_t, std::string> messages;
  v1::EmbedResponse response;
  while (reader->Read(&response)) messages[response.index()] = response.message();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(messages[0], "");
  EXPECT_THAT(messages[1], HasSubstr("holds no tokens"));
  EXPECT_THAT(messages[2], HasSubstr("ask for truncation"));
  EXPECT_THAT(messages[3], HasSubstr("max_text_bytes"));
  EXPECT_THAT(messages[4], HasSubstr("given more than once"));
}

TEST_F(TextTest, IsCutOnTheSideThatTheCallerChooses) {
  for (const Protocol protocol : {Protocol::kLinserve, Protocol::kOip}) {
    EmbedCall call = CallOf("tokens", {Text("a", LongText())});
    call.truncation = Truncation::kRight;
    const auto right = Embed(call, protocol);
    EXPECT_EQ(right[0].tokens, kTestLongest);
    EXPECT_EQ(Values(right[0].outputs.at("y"))[0], 24);  // the id of the first token
    call.truncation = Truncation::kLeft;
    const auto left = Embed(call, protocol);
    EXPECT_EQ(left[0].tokens, kTestLongest);
    const auto rows = Values(left[0].outputs.at("y"));
    EXPECT_EQ(rows[rows.size() - 4], 5);  // the id of the last token
  }
}

TEST_F(TextTest, OnlyAModelWithATokenizerTakesText) {
  EmbeddingClient client(server_.client_options());
  EXPECT_TRUE(client.GetModel("tokens")->text);
  EXPECT_FALSE(client.GetModel("floats")->text);
  const auto results = client.Embed(CallOf("floats", {Text("a", kText)}));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(absl::IsInvalidArgument(results->at(0).status));
  EXPECT_THAT(results->at(0).status.message(), HasSubstr("for it has no tokenizer"));
}

TEST_F(TextTest, AStreamOfManyTextsIsAnsweredInFull) {
  EmbeddingClient client(server_.client_options());
  const auto stream = client.OpenStream();
  constexpr int kRequests = 200;
  std::atomic<int> right = 0;
  for (int i = 0; i < kRequests; ++i) {
    const absl::Status sent = stream->Send(
        CallOf("tokens", {Text("a", i % 2 == 0 ? kText : kOther)}), [&, i](StreamAnswer answer) {
          if (answer.status.ok() && answer.results[0].tokens == (i % 2 == 0 ? 10 : 12)) ++right;
        });
    EXPECT_TRUE(sent.ok()) << sent;
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(right, kRequests);
  EXPECT_TRUE(server_.WaitFor("linserve_inflight_bytes", 0));
}

class MarkedTextTest : public TextTest {
 protected:
  MarkedTextTest() : TextTest({.add_bos = true, .add_eos = true}) {}
};

TEST_F(MarkedTextTest, MarksAreTokensAndStayWhereATextIsCut) {
  std::vector<int64_t> marked = kIds;
  marked.insert(marked.begin(), 1);
  marked.push_back(2);
  EmbedCall call = CallOf("tokens", {Text("a", kText), Text("b", LongText()), Text("c", "")});
  for (const Truncation truncation : {Truncation::kLeft, Truncation::kRight}) {
    call.truncation = truncation;
    const auto results = Embed(call, Protocol::kLinserve);
    EXPECT_EQ(results[0].tokens, 12);
    EXPECT_EQ(Values(results[0].outputs.at("y")), ExpectedRows(marked));
    EXPECT_EQ(results[1].tokens, kTestLongest);
    const auto rows = Values(results[1].outputs.at("y"));
    EXPECT_EQ(rows[0], 1);
    EXPECT_EQ(rows[rows.size() - 4], 2);
    EXPECT_THAT(results[2].status.message(), HasSubstr("holds no tokens"));
  }
}

class InferTextTest : public InferTest {
 protected:
  InferTextTest() : InferTest({.text = true}) {}

  static ModelInferRequest TextRequest(const Shape& shape, const std::vector<std::string>& texts) {
    ModelInferRequest request;
    request.set_model_name("tokens");
    InferInput& input = AddInput(request, "text", "BYTES", shape);
    for (const std::string& text : texts) input.mutable_contents()->add_bytes_contents(text);
    return request;
  }

  std::string Fault(const ModelInferRequest& request) {
    ModelInferResponse response;
    const grpc::Status status = Infer(request, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  }

  using InferTest::Infer;
};

TEST_F(InferTextTest, TellsTheTokensOfEachSequenceWhereAsked) {
  ModelInferRequest request = TextRequest({2, 1}, {kText, kOther});
  request.add_outputs()->set_name("tokens");
  (*request.mutable_parameters())["pooling"].set_string_param("mean");
  const ModelInferResponse response = Infer(request);
  ASSERT_EQ(response.outputs_size(), 2);
  EXPECT_EQ(response.outputs(0).name(), "tokens");
  EXPECT_EQ(response.outputs(0).datatype(), "INT64");
  EXPECT_EQ(response.raw_output_contents(0), Bytes<int64_t>({10, 12}));
  EXPECT_EQ(response.outputs(1).name(), "y");
}

TEST_F(InferTextTest, SaysWhatIsWrongWithTexts) {
  EXPECT_THAT(Fault(TextRequest({3}, {kText})), HasSubstr("1 texts, expected 3 by its shape"));
  EXPECT_THAT(Fault(TextRequest({1, 3}, {kText, kText, kText})),
              HasSubstr("[batch] or [batch, 1]"));
  EXPECT_THAT(Fault(TextRequest({2, 2}, {kText, kText})), HasSubstr("2 texts, expected 4"));
  EXPECT_THAT(Fault(TextRequest({1, 2}, {kText, kText})),
              HasSubstr("reads one text at a time: its tokenizer.model does not say"));
  EXPECT_THAT(Fault(TextRequest({2}, {kText, "caf\xe9"})),
              HasSubstr("sequence 1 of the batch: the text is not UTF-8"));
  ModelInferRequest cut = TextRequest({1}, {});
  cut.mutable_inputs(0)->clear_contents();
  cut.add_raw_input_contents(std::string("\x09\0\0\0abc", 7));
  EXPECT_THAT(Fault(cut), HasSubstr("text 0 ends before its length"));
  ModelInferRequest twice = TextRequest({1}, {kText});
  twice.add_raw_input_contents(std::string("\x03\0\0\0abc", 7));
  EXPECT_THAT(Fault(twice), HasSubstr("both contents and raw_input_contents"));
  ModelInferRequest counted = TextRequest({1}, {kText});
  for (int i = 0; i < 2; ++i) counted.add_outputs()->set_name("tokens");
  EXPECT_THAT(Fault(counted), HasSubstr("output 'tokens': it is asked for more than once"));
  ModelInferRequest both = TextRequest({1}, {kText});
  AddInput(both, "x", "INT64", {1, 1}).mutable_contents()->add_int64_contents(1);
  EXPECT_THAT(Fault(both), HasSubstr("stands for all inputs"));
  ModelInferRequest side = TextRequest({1}, {kText});
  (*side.mutable_parameters())["truncation"].set_string_param("middle");
  EXPECT_THAT(Fault(side), HasSubstr("'none', 'left' or 'right'"));
}

}  // namespace
}  // namespace linserve
