#include "rpc/embedding/upload.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <limits>

#include "serving/request_context.h"
#include "support/test_files.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using absl::StatusCode;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kBytes = "linserve_inflight_bytes";

// Makes a chunk of `ids` from `first` on, of `total`.
v1::EmbedRequest Chunk(const std::string& id, const std::vector<int64_t>& ids, uint64_t first,
                       uint64_t total) {
  v1::EmbedRequest request;
  request.set_request_id(id);
  v1::Sequence& sequence = *request.add_sequences();
  sequence.set_total_rows(total);
  sequence.set_first_row(first);
  for (const int64_t token : ids) sequence.add_token_ids(static_cast<uint32_t>(token));
  if (first > 0) return request;
  request.set_model("tokens");
  sequence.set_id("sequence of " + id);
  return request;
}

RequestHead HeadIn(const std::string& message) {
  const grpc::Slice slice(message);
  return HeadOf(grpc::ByteBuffer(&slice, 1));
}

RequestHead HeadIn(const v1::EmbedRequest& request) { return HeadIn(request.SerializeAsString()); }

TEST(RequestHeadTest, TellsTheFirstChunkOfASequenceLaterOnesAndWholeRequestsApart) {
  EXPECT_EQ(HeadIn(Chunk("a", {1, 2}, 0, 4)).id, "a");
  EXPECT_TRUE(HeadIn(Chunk("a", {1, 2}, 0, 4)).chunk);
  EXPECT_FALSE(HeadIn(Chunk("a", {1, 2}, 0, 4)).later_chunk);
  EXPECT_TRUE(HeadIn(Chunk("a", {1, 2}, 2, 4)).later_chunk);
  EXPECT_TRUE(HeadIn(Chunk("a", {1, 2}, 2, 0)).later_chunk);
  EXPECT_FALSE(HeadIn(Chunk("a", {1, 2}, 0, 0)).chunk);
  v1::EmbedRequest two = Chunk("a", {1}, 1, 2);
  two.add_sequences();
  EXPECT_FALSE(HeadIn(two).chunk);
}

TEST(RequestHeadTest, ReadsWhatIsNoMessageAsFarAsItGoes) {
  const std::string whole = Chunk("a", {1, 2}, 2, 4).SerializeAsString();
  EXPECT_EQ(HeadIn(whole + "\x07").id, "a");
  for (size_t size = 0; size < whole.size(); ++size) HeadIn(whole.substr(0, size));
  EXPECT_FALSE(HeadIn(Chunk(std::string(kMaxIdBytes, 'a'), {1}, 0, 2)).id_cut);
  const RequestHead head = HeadIn(Chunk(std::string(5000, 'a'), {1}, 0, 2));
  EXPECT_EQ(head.id, std::string(kMaxIdBytes, 'a'));
  EXPECT_TRUE(head.id_cut);
  EXPECT_TRUE(head.chunk);
  std::string umlauts = "a";
  while (umlauts.size() < 2 * kMaxIdBytes) umlauts += "\xc3\xa4";
  EXPECT_EQ(HeadIn(Chunk(umlauts, {1}, 0, 2)).id, umlauts.substr(0, kMaxIdBytes - 1));
  EXPECT_EQ(HeadIn("\x0a\x02\xff\xff").id, "");
}

class UploadTest : public ::testing::Test {
 protected:
  explicit UploadTest(TestServerOptions options = {}) : server_(std::move(options)) {}

  void Send(const v1::EmbedRequest& request) { ASSERT_TRUE(stream_->Write(request)); }

  v1::EmbedResponse Read() {
    v1::EmbedResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }

  // Expects that the next answer says that the request failed.
  void ExpectRefused(const std::string& id, StatusCode code, const std::string& message) {
    const v1::EmbedResponse response = Read();
    EXPECT_TRUE(response.request_failed());
    EXPECT_EQ(response.request_id(), id);
    EXPECT_EQ(static_cast<StatusCode>(response.code()), code);
    EXPECT_THAT(response.message(), HasSubstr(message));
  }

  // Expects that the stream serves, whatever went wrong before.
  void ExpectServes() {
    Send(Chunk("good", {1, 2}, 0, 3));
    Send(Chunk("good", {3}, 2, 3));
    const v1::EmbedResponse response = Read();
    EXPECT_EQ(response.code(), 0) << response.message();
    EXPECT_EQ(response.request_id(), "good");
    EXPECT_EQ(response.sequence_id(), "sequence of good");
    EXPECT_EQ(response.tokens(), 3u);
  }

  TestServer server_;
  std::unique_ptr<v1::EmbeddingService::Stub> stub_ = server_.NewStub();
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::EmbedRequest, v1::EmbedResponse>> stream_ =
      stub_->EmbedStream(&context_);
};

TEST_F(UploadTest, ASequenceInChunksIsEmbeddedAsOneThatComesAsAWhole) {
  EmbeddingClient client(server_.client_options());
  const std::vector<int64_t> ids = Ids(5000);
  EmbedCall call = CallOf("tokens", {Tokens("long", ids)});
  call.chunk_bytes = 8 * 64;
  std::vector<int64_t> sent;
  call.on_progress = [&](const EmbedProgress& progress) {
    EXPECT_EQ(progress.rows, 5000);
    sent.push_back(progress.rows_sent);
  };
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(results->at(0).status.ok()) << results->at(0).status;
  EXPECT_EQ(results->at(0).id, "long");
  EXPECT_EQ(results->at(0).tokens, 5000);
  EXPECT_EQ(Values(results->at(0).outputs.at("y")), ExpectedRows(ids));
  EXPECT_GT(sent.size(), 78u);
  EXPECT_EQ(sent.front(), 64);
  EXPECT_EQ(sent.back(), 5000);

  call = CallOf("floats", {Floats("f", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})});
  call.sequences[0].inputs["context"] = Tensor::FromFloats({1, 3}, {1, 1, 1});
  const auto whole = client.Embed(call);
  call.chunk_bytes = 12;
  const auto chunks = client.Embed(call);
  ASSERT_TRUE(whole.ok() && chunks.ok()) << chunks.status();
  EXPECT_EQ(Values(chunks->at(0).outputs.at("y")), Values(whole->at(0).outputs.at("y")));
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
  EXPECT_TRUE(server_.WaitFor(InFlight("EmbedStream"), 0));
}

TEST_F(UploadTest, SeveralMayComeAtATimeBetweenOtherRequests) {
  Send(Chunk("a", {1}, 0, 2));
  Send(Chunk("b", {2, 3}, 0, 4));
  Send(Chunk("b", {4}, 2, 4));
  v1::EmbedRequest whole = Chunk("whole", {9}, 0, 0);
  Send(whole);
  EXPECT_EQ(Read().request_id(), "whole");
  EXPECT_GE(server_.Scrape()[kBytes], 6 * sizeof(int64_t));
  Send(Chunk("b", {5}, 3, 4));
  EXPECT_EQ(Read().request_id(), "b");
  Send(Chunk("a", {6}, 1, 2));
  EXPECT_EQ(Read().request_id(), "a");
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
}

TEST_F(UploadTest, AChunkThatIsNotTheNextOneIsRefusedAndThoseAfterItAreDropped) {
  Send(Chunk("a", {1, 2}, 0, 6));
  Send(Chunk("a", {3}, 3, 6));
  ExpectRefused(
      "a", StatusCode::kInvalidArgument,
      "begin with row 3 of 6, expected row 2 of 6: the chunks of a sequence come in order");
  Send(Chunk("a", {3}, 2, 6));
  Send(Chunk("a", {3}, 5, 6));
  Send(Chunk("b", {1}, 0, 3));
  Send(Chunk("b", {1}, 1, 4));
  ExpectRefused("b", StatusCode::kInvalidArgument, "row 1 of 4, expected row 1 of 3");
  Send(Chunk("c", {1}, 0, 3));
  Send(Chunk("c", {1, 2, 3}, 1, 3));
  ExpectRefused("c", StatusCode::kInvalidArgument,
                "in the chunk from row 1 on: it has 3 rows, expected at most 2");
  Send(Chunk("never", {1}, 5, 6));
  ExpectRefused("never", StatusCode::kInvalidArgument, "first_row 0");
  Send(Chunk("empty", {}, 0, 6));
  ExpectRefused("empty", StatusCode::kInvalidArgument, "in the chunk from row 0 on");
  ExpectServes();
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
}

TEST_F(UploadTest, WhatNoSequenceCanBeIsRefusedAtOnce) {
  Send(Chunk("long", {1}, 0, kTestLongest + 1));
  ExpectRefused("long", StatusCode::kInvalidArgument, "expected at most 20000");
  Send(Chunk("endless", {1}, 0, std::numeric_limits<uint64_t>::max()));
  ExpectRefused("endless", StatusCode::kInvalidArgument, "total_rows is 18446744073709551615");
  Send(Chunk("id", {1}, 0, 6));
  Send(Chunk("id", {kTestVocabulary}, 1, 6));
  ExpectRefused("id", StatusCode::kInvalidArgument, "expected 0 <= id < 100");
  v1::EmbedRequest unknown = Chunk("unknown", {1}, 0, 6);
  unknown.set_model("nobody");
  Send(unknown);
  ExpectRefused("unknown", StatusCode::kNotFound, "nobody");
  v1::EmbedRequest session = Chunk("session", {1}, 0, 6);
  session.mutable_sequences(0)->mutable_session()->set_id("s");
  Send(session);
  ExpectRefused("session", StatusCode::kInvalidArgument, "no chunk of a session");
  ExpectServes();
}

TEST_F(UploadTest, AChunkOfNoSequenceIsRefusedEvenIfNoOtherComes) {
  Send(Chunk("headless", {1}, 2, 6));
  ExpectRefused("headless", StatusCode::kInvalidArgument, "no sequence has begun");
  Send(Chunk("headless", {1}, 3, 6));
  Send(Chunk("headless", {1, 2}, 4, 6));
  ExpectServes();
}

TEST_F(UploadTest, IsTakenByEmbedStreamAlone) {
  grpc::ClientContext context;
  const auto reader = stub_->Embed(&context, Chunk("", {1}, 0, 2));
  v1::EmbedResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.code(), static_cast<int>(StatusCode::kInvalidArgument));
  EXPECT_THAT(response.message(), HasSubstr("EmbedStream"));
}

TEST_F(UploadTest, ThatEndsTooEarlyIsAnswered) {
  Send(Chunk("a", {1, 2}, 0, 6));
  Send(Chunk("b", {1}, 0, 6));
  ASSERT_TRUE(stream_->WritesDone());
  ExpectRefused("a", StatusCode::kInvalidArgument, "the stream ended after 2 of 6 rows");
  ExpectRefused("b", StatusCode::kInvalidArgument, "the stream ended after 1 of 6 rows");
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
}

TEST_F(UploadTest, IsForgottenWhenItsCallerLeaves) {
  Send(Chunk("a", {1, 2}, 0, 10000));
  EXPECT_TRUE(server_.WaitFor("linserve_open_streams{rpc=\"EmbedStream\"}", 1));
  Send(Chunk("whole", {9}, 0, 0));
  EXPECT_EQ(Read().request_id(), "whole");
  EXPECT_GE(server_.Scrape()[kBytes], 10000 * sizeof(int64_t));
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
  EXPECT_TRUE(server_.WaitFor(InFlight("EmbedStream"), 0));
}

TEST_F(UploadTest, IsAnsweredOnceWhateverElseIsSent) {
  server_.tokens().Hold();
  Send(Chunk("whole", {9}, 0, 0));
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  // The id is taken, so that there is one refusal, and nothing for the later chunks.
  for (const uint64_t row : {0, 1, 2}) Send(Chunk("whole", {1}, row, 3));
  ExpectRefused("whole", StatusCode::kInvalidArgument, "in flight on this stream already");
  server_.tokens().LetGo();
  EXPECT_FALSE(Read().request_failed());
  // One chunk too many comes, then chunks of a sequence that never began: their refusal shows that
  // it has come.
  server_.tokens().Hold();
  Send(Chunk("a", {1, 2}, 0, 2));
  Send(Chunk("a", {3}, 2, 2));
  for (const uint64_t row : {1, 2, 3, 4, 5}) Send(Chunk("never", {1}, row, 6));
  ExpectRefused("never", StatusCode::kInvalidArgument, "no sequence has begun");
  server_.tokens().LetGo();
  const v1::EmbedResponse response = Read();
  EXPECT_FALSE(response.request_failed());
  EXPECT_EQ(response.request_id(), "a");
  v1::EmbedRequest lost = Chunk("lost", {1}, 5, 0);
  Send(lost);
  ExpectRefused("lost", StatusCode::kInvalidArgument, "no sequence has begun");
  ExpectServes();
}

// Another upload may have the id that is left of a longer one.
TEST_F(UploadTest, WithAnIdThatIsTooLongIsRefusedOnceAndHarmsNoOther) {
  const std::string longest(kMaxIdBytes, 'a');
  const auto chunk = [](const std::string& id, const std::vector<int64_t>& ids, uint64_t row,
                        uint64_t rows) {
    v1::EmbedRequest request = Chunk(id, ids, row, rows);
    request.mutable_sequences(0)->clear_id();  // it would be too long, too
    return request;
  };
  Send(chunk(longest, {1, 2}, 0, 4));
  for (const uint64_t row : {0, 1, 2}) Send(chunk(longest + "b", {1}, row, 3));
  ExpectRefused(longest, StatusCode::kInvalidArgument,
                "field EmbedRequest.request_id: it has 129 bytes, expected at most 128");
  Send(chunk(longest, {3, 4}, 2, 4));
  const v1::EmbedResponse response = Read();
  EXPECT_FALSE(response.request_failed()) << response.message();
  EXPECT_EQ(response.request_id(), longest);
  EXPECT_EQ(response.tokens(), 4u);
  ExpectServes();
}

TEST_F(UploadTest, EndsWithAChunkThatHoldsTooMuch) {
  Send(Chunk("a", {1, 2}, 0, 6));
  v1::EmbedRequest chunk = Chunk("a", {3}, 2, 6);
  for (int i = 0; i < 65; ++i) chunk.mutable_options()->add_outputs("y");
  Send(chunk);
  ExpectRefused("a", StatusCode::kInvalidArgument, "field EmbedOptions.outputs holds more than 64");
  Send(Chunk("a", {3}, 2, 6));
  ExpectServes();
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
}

class SlowUploadTest : public UploadTest {
 protected:
  SlowUploadTest()
      : UploadTest({.grpc = {.limits = {.max_upload_pause = std::chrono::milliseconds(500)}}}) {}
};

TEST_F(SlowUploadTest, IsGivenUpWhereNoChunkComesForSoLong) {
  Send(Chunk("a", {1, 2}, 0, 6));
  ExpectRefused("a", StatusCode::kDeadlineExceeded, "after 2 of 6 rows");
  Send(Chunk("a", {3, 4}, 2, 6));
  Send(Chunk("a", {5, 6}, 4, 6));
  ExpectServes();
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
}

TEST_F(UploadTest, TheClientWaitsAsLongAsThereIsProgress) {
  server_.tokens().Hold();
  ClientOptions options = server_.client_options();
  options.timeout = std::chrono::milliseconds(300);
  EmbedCall call = CallOf("tokens", {Tokens("long", Ids(5000))});
  call.chunk_bytes = 8 * 64;
  const auto results = EmbeddingClient(options).Embed(call);
  EXPECT_THAT(results.status(), IsStatus(StatusCode::kDeadlineExceeded, "nothing has happened"));
  server_.tokens().LetGo();
}

class FewUploadsTest : public UploadTest {
 protected:
  FewUploadsTest() : UploadTest({.grpc = {.limits = {.max_requests_per_stream = 2}}}) {}
};

TEST_F(FewUploadsTest, AreBegunAtATimeAndNoneHoldsUpWhatElseIsSent) {
  for (const char* id : {"a", "b", "c"}) Send(Chunk(id, {1}, 0, 2));
  ExpectRefused("c", StatusCode::kResourceExhausted, "max_requests_per_stream");
  Send(Chunk("whole", {9}, 0, 0));
  EXPECT_EQ(Read().request_id(), "whole");
  Send(Chunk("a", {1}, 1, 2));
  EXPECT_EQ(Read().request_id(), "a");
  ExpectServes();
}

class SmallUploadTest : public UploadTest {
 protected:
  SmallUploadTest()
      : UploadTest({.grpc = {.inflight = {.max_bytes = 400000, .max_bytes_per_caller = 400000}}}) {}
};

// The first chunk reserves for what it takes while it is read; a larger one for what it takes more.
TEST_F(SmallUploadTest, ReservesForAChunkThatTakesMoreThanTheFirst) {
  Send(Chunk("a", {1}, 0, 20000));
  Send(Chunk("a", std::vector<int64_t>(19000, 1), 1, 20000));
  ExpectRefused("a", StatusCode::kResourceExhausted, "max_inflight_bytes");
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
}

TEST_F(SmallUploadTest, IsCountedAsAWholeFromItsFirstChunkOn) {
  for (const char* id : {"a", "b", "c"}) {
    Send(Chunk(id, Ids(100), 0, 20000));
  }
  ExpectRefused("c", StatusCode::kResourceExhausted, "max_inflight_bytes");
  for (const char* id : {"a", "b"}) {
    for (uint64_t row = 100; row < 20000; row += 100) Send(Chunk(id, Ids(100), row, 20000));
  }
  std::atomic<int> last = 0;
  while (last < 2) {
    const v1::EmbedResponse response = Read();
    EXPECT_THAT(response.code(),
                testing::AnyOf(0, static_cast<int>(StatusCode::kResourceExhausted)));
    if (response.last() || response.request_failed()) ++last;
  }
  EXPECT_TRUE(server_.WaitFor(kBytes, 0));
}

}  // namespace
}  // namespace linserve
