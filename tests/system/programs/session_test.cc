#include <cmath>
#include <future>

#include "client/commands/neighbours.h"
#include "core/files/npy.h"
#include "core/files/safetensors.h"
#include "system/programs/shared_server.h"

namespace linserve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSessionRows = 60;
constexpr float kTolerance = 1e-5F;

// Serves a causal language model, and an encoder that is not causal.
class SessionServers : public SharedServerTest {
 protected:
  static void SetUpTestSuite() {
    repository_ = MakeRepository();
    const auto init = [](const std::string& name, const std::string& architecture,
                         const std::string& params) {
      const Outcome made = RunLinserve({"init", "--architecture", architecture, "--params", params,
                                        "--output", repository_ + "/" + name + "/1"});
      EXPECT_EQ(made.code, 0) << made.err;
    };
    init("causal", "linear_attention_transformer.LinearAttentionTransformerLM",
         R"({"num_tokens": 256, "dim": 32, "heads": 4, "depth": 2, "max_seq_len": 256,
             "causal": true, "n_local_attn_heads": 2, "local_attn_window_size": 8,
             "shift_tokens": true, "blindspot_size": 4})");
    init("linformer", "linformer.Linformer", R"({"dim": 8, "seq_len": 64, "depth": 1, "k": 4})");
    Serve(repository_);
  }

  static std::vector<int64_t> Ids() {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < kSessionRows; ++i) ids.push_back(i * i % 251);
    return ids;
  }

  // Makes a call for tokens [begin, end) of the sequence, as a chunk or as a whole.
  static EmbedCall CallOf(int64_t begin, int64_t end,
                          std::optional<SessionChunk> chunk = std::nullopt) {
    EmbedCall call{.model = "causal", .options = {}};
    const Tensor all = Tensor::FromInts({kSessionRows}, Ids());
    call.sequences.push_back(
        {.id = "s", .inputs = {{"x", all.Rows(begin, end)}}, .session = std::move(chunk)});
    return call;
  }

  static SequenceResult Embed(const RunningServer& server, const EmbedCall& call,
                              Protocol protocol = Protocol::kLinserve) {
    ClientOptions options = server.client_options();
    options.protocol = protocol;
    auto results = EmbeddingClient(options).Embed(call);
    SequenceResult failed;
    failed.status = results.status();
    return results.ok() ? results->at(0) : failed;
  }

  static std::vector<float> Rows(const SequenceResult& result) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.status.ok() ? ToFloats(result.outputs.begin()->second) : std::vector<float>();
  }

  static auto Near(const std::vector<float>& rows) {
    return testing::Pointwise(testing::FloatNear(kTolerance), rows);
  }

  static inline std::string repository_;
  TempDir directory_;  // for one test alone
};

TEST_F(SessionServers, ChunksSentWithoutWaitingGiveTheRowsOfTheWholeSequence) {
  const RunningServer& server = shared();
  const std::string open = R"(linserve_sessions{model="causal",version="1"})";
  const double before = server.Scrape()[open];
  const std::vector<float> whole = Rows(Embed(server, CallOf(0, kSessionRows)));
  EmbeddingClient client(server.client_options());
  const auto stream = client.OpenStream();
  std::vector<std::future<StreamAnswer>> answers;
  for (int64_t row = 0; row < kSessionRows;) {
    const int64_t end = std::min(kSessionRows, row + 1 + row % 7);
    auto answer = std::make_shared<std::promise<StreamAnswer>>();
    answers.push_back(answer->get_future());
    const SessionChunk chunk{
        .id = "together", .start = row == 0, .end = end == kSessionRows, .position = row};
    ASSERT_TRUE(stream
                    ->Send(CallOf(row, end, chunk),
                           [answer](StreamAnswer got) { answer->set_value(std::move(got)); })
                    .ok());
    row = end;
  }
  std::vector<float> rows;
  for (auto& answer : answers) {
    const StreamAnswer got = answer.get();
    ASSERT_TRUE(got.status.ok()) << got.status;
    const std::vector<float> part = Rows(got.results.at(0));
    rows.insert(rows.end(), part.begin(), part.end());
  }
  EXPECT_THAT(rows, Near(whole));
  EXPECT_TRUE(server.WaitFor(open, before));
}

TEST_F(SessionServers, ASavedSessionGoesOnInAnotherServer) {
  const RunningServer& first = shared();
  const RunningServer second(repository_);
  const std::vector<float> whole = Rows(Embed(first, CallOf(0, kSessionRows)));
  const SequenceResult saved =
      Embed(first, CallOf(0, 33, SessionChunk{.id = "a", .start = true, .save = true}));
  ASSERT_TRUE(saved.status.ok()) << saved.status;
  EXPECT_EQ(saved.position, 33);
  const SequenceResult moved = Embed(
      second,
      CallOf(33, kSessionRows, SessionChunk{.id = "a", .start = true, .state = saved.session}));
  EXPECT_EQ(moved.position, kSessionRows);
  const size_t width = whole.size() / kSessionRows;
  EXPECT_THAT(Rows(moved), Near({whole.begin() + 33 * static_cast<int64_t>(width), whole.end()}));
  std::string altered = saved.session;
  altered[altered.size() / 2] ^= 1;
  EXPECT_THAT(
      Embed(second, CallOf(0, 1, SessionChunk{.id = "b", .start = true, .state = altered})).status,
      IsInvalid("altered or cut"));
}

TEST_F(SessionServers, TheOpenInferenceProtocolHasThemAsSequences) {
  const RunningServer& server = shared();
  const std::vector<float> whole = Rows(Embed(server, CallOf(0, kSessionRows)));
  std::vector<float> rows;
  for (int64_t row = 0; row < kSessionRows; row += 20) {
    const SessionChunk chunk{.id = "7", .start = row == 0, .end = row == 40};
    const SequenceResult part = Embed(server, CallOf(row, row + 20, chunk), Protocol::kOip);
    EXPECT_EQ(part.position, row + 20);
    const std::vector<float> values = Rows(part);
    rows.insert(rows.end(), values.begin(), values.end());
  }
  EXPECT_THAT(rows, Near(whole));
  const SequenceResult gone = Embed(server, CallOf(0, 1, SessionChunk{.id = "7"}), Protocol::kOip);
  EXPECT_EQ(gone.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(gone.status.message(), HasSubstr("has ended, after 60 rows"));
}

TEST_F(SessionServers, ALostOneSaysFromWhereToSendAgain) {
  const RunningServer server(repository_, {"--max-session-bytes", "500000"});
  EXPECT_TRUE(Embed(server, CallOf(0, 9, SessionChunk{.id = "a", .start = true})).status.ok());
  for (int i = 0; i < 8; ++i) {
    const SessionChunk other{.id = std::to_string(i), .start = true};
    EXPECT_TRUE(Embed(server, CallOf(0, 9, other)).status.ok());
  }
  const SequenceResult lost = Embed(server, CallOf(9, 12, SessionChunk{.id = "a", .position = 9}));
  EXPECT_EQ(lost.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ResumePosition(lost.status), 0);
  EXPECT_THAT(lost.status.message(), HasSubstr("max_session_bytes"));
  const SequenceResult skipped =
      Embed(server, CallOf(9, 12, SessionChunk{.id = "7", .position = 12}));
  EXPECT_EQ(ResumePosition(skipped.status), 9);
}

TEST_F(SessionServers, ModelsThatCannotSayWhy) {
  const RunningServer& server = shared();
  EmbedCall call{.model = "linformer", .options = {}};
  call.sequences.push_back(
      {.id = "s",
       .inputs = {{"x", Tensor::FromFloats({2, 8}, std::vector<float>(16, 1))}},
       .session = SessionChunk{.id = "a", .start = true}});
  const absl::Status status = Embed(server, call).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("linformer.Linformer has no sessions"));
  const auto model = EmbeddingClient(server.client_options()).GetModel("linformer");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->session_bytes, 0);
  EXPECT_THAT(model->no_sessions, HasSubstr("length"));
  EXPECT_GT(EmbeddingClient(server.client_options()).GetModel("causal")->session_bytes, 0);
}

TEST_F(SessionServers, TheClientSendsAFileChunkByChunk) {
  const RunningServer& server = shared();
  const std::string file = directory_.File("x.npy");
  const std::string whole = directory_.File("whole.npy");
  const std::string parts = directory_.File("parts.npy");
  const std::string session = directory_.File("session");
  ASSERT_TRUE(WriteNpy(file, Tensor::FromInts({kSessionRows}, Ids())).ok());
  const auto embed = [&](const std::string& input, const std::string& output, Arguments more) {
    Arguments arguments = {"embed",  "--target",  server.target(), input,      "--model",
                           "causal", "--pooling", "none",          "--output", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = RunClient(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto array = ReadNpy(output);
    EXPECT_TRUE(array.ok()) << array.status();
    return array.ok() ? ToFloats(*array) : std::vector<float>();
  };
  const std::vector<float> expected = embed(file, whole, {});
  EXPECT_THAT(embed(file, parts, {"--chunk-rows", "7"}), Near(expected));

  const std::string first = directory_.File("first.npy");
  const std::string second = directory_.File("second.npy");
  const Tensor all = Tensor::FromInts({kSessionRows}, Ids());
  ASSERT_TRUE(WriteNpy(first, all.Rows(0, 31)).ok());
  ASSERT_TRUE(WriteNpy(second, all.Rows(31, kSessionRows)).ok());
  std::vector<float> rows = embed(first, parts, {"--chunk-rows", "8", "--save", session});
  const std::vector<float> rest = embed(second, parts, {"--chunk-rows", "8", "--restore", session});
  rows.insert(rows.end(), rest.begin(), rest.end());
  EXPECT_THAT(rows, Near(expected));

  const Outcome pooled = RunClient(
      {"embed", "--target", server.target(), file, "--model", "causal", "--chunk-rows", "7"});
  EXPECT_EQ(pooled.code, 1);
  EXPECT_THAT(pooled.err, HasSubstr("choose --pooling none"));
}

TEST_F(SessionServers, AContextComesWithTheFirstChunkOfAFile) {
  const TempDir directory;
  const Outcome made =
      RunLinserve({"init", "--architecture",
                   "linear_attention_transformer.LinearAttentionTransformer", "--params",
                   R"({"dim": 12, "heads": 2, "depth": 2, "max_seq_len": 64, "causal": true,
           "receives_context": true})",
                   "--output", directory.File("models/with")});
  ASSERT_EQ(made.code, 0) << made.err;
  std::vector<float> values(20 * 12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * i % 97));
  const Tensor x = Tensor::FromFloats({1, 20, 12}, values);
  ASSERT_TRUE(
      WriteSafetensors(directory.File("in.safetensors"),
                       {{"input.x", x},
                        {"input.context",
                         Tensor::FromFloats({1, 5, 12}, {values.begin(), values.begin() + 60})}})
          .ok());
  const Outcome run = RunLinserve({"run", "--model", directory.File("models/with"), "--input",
                                   directory.File("in.safetensors"), "--output",
                                   directory.File("whole.safetensors")});
  ASSERT_EQ(run.code, 0) << run.err;
  const RunningServer server(directory.File("models"));
  const Outcome embedded = RunClient({"embed", directory.File("in.safetensors"), "--target",
                                      server.target(), "--batched", "--chunk-rows", "8",
                                      "--pooling", "none", "--output", directory.File("rows.npy")});
  ASSERT_EQ(embedded.code, 0) << embedded.err;
  const auto rows = ReadNpy(directory.File("rows.npy"));
  const auto whole = ReadSafetensors(directory.File("whole.safetensors"));
  ASSERT_TRUE(rows.ok() && whole.ok());
  EXPECT_THAT(ToFloats(*rows), Near(ToFloats(whole->tensors.at("output.y"))));
}

TEST_F(SessionServers, WhatOnlyOneProtocolHasIsRefusedBeforeAnythingIsSent) {
  const Outcome outcome =
      RunClient({"embed", "-", "--target", "127.0.0.1:1", "--protocol", "oip", "--chunk-rows", "8",
                 "--pooling", "none", "--output", directory_.File("rows.npy"), "--save",
                 directory_.File("state")},
                "text");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--protocol linserve"));
}

}  // namespace
}  // namespace linserve
