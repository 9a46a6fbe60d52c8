#include "client/library/embed_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "client/fake_server.h"
#include "client/library/embedding_client.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

EmbedCall CallOf(std::string id, std::vector<NamedSequence> sequences) {
  EmbedCall call;
  call.request_id = std::move(id);
  call.sequences = std::move(sequences);
  return call;
}

// Collects the answers of a stream.
class Answers {
 public:
  EmbedStream::Callback callback() {
    return [this](StreamAnswer answer) {
      std::lock_guard lock(mutex_);
      answers_.push_back(std::move(answer));
    };
  }

  std::vector<StreamAnswer> all() const {
    std::lock_guard lock(mutex_);
    return answers_;
  }

  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const StreamAnswer& answer : all()) ids.push_back(answer.request_id);
    return ids;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<StreamAnswer> answers_;
};

TEST(EmbedStream, AnswersEveryRequestByItsId) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  Answers answers;
  const auto stream = client.OpenStream();
  ASSERT_TRUE(stream->Send(CallOf("one", {Tokens("a", {1})}), answers.callback()).ok());
  ASSERT_TRUE(
      stream->Send(CallOf("two", {Tokens("b", {2}), Tokens("c", {1013})}), answers.callback())
          .ok());
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(answers.ids(), ElementsAre("one", "two"));
  const StreamAnswer two = answers.all()[1];
  EXPECT_TRUE(two.status.ok());
  EXPECT_EQ(two.results[0].id, "b");
  EXPECT_TRUE(two.results[0].status.ok());
  EXPECT_EQ(two.results[1].status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(EmbedStream, ManyRequestsInFlightAllEnd) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  Answers answers;
  const auto stream = client.OpenStream();
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(stream->Send(CallOf("", {Tokens("a", {i % 10 + 1})}), answers.callback()).ok());
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers.all().size(), 500U);
}

TEST(EmbedStream, AFaultOfOneRequestLeavesTheStreamAlone) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  Answers answers;
  const auto stream = client.OpenStream();
  ASSERT_TRUE(stream->Send(CallOf("empty", {}), answers.callback()).ok());
  ASSERT_TRUE(stream->Send(CallOf("good", {Tokens("a", {1})}), answers.callback()).ok());
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(answers.all().size(), 2U);
  EXPECT_EQ(answers.all()[0].status, absl::InvalidArgumentError("no sequences"));
  EXPECT_TRUE(answers.all()[1].status.ok());
}

TEST(EmbedStream, AnIdInFlightIsRefused) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  Answers answers;
  const auto stream = client.OpenStream();
  ASSERT_TRUE(stream->Send(CallOf("same", {Tokens("a", {1099})}), answers.callback()).ok());
  EXPECT_EQ(stream->Send(CallOf("same", {Tokens("a", {1})}), answers.callback()).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(EmbedStream, ABrokenStreamEndsWhatIsInFlightWithItsStatus) {
  FakeServer server({.break_streams = true});
  EmbeddingClient client(server.client_options());
  Answers answers;
  const auto stream = client.OpenStream();
  ASSERT_TRUE(stream->Send(CallOf("stuck", {Tokens("a", {1099})}), answers.callback()).ok());
  ASSERT_TRUE(stream->Send(CallOf("good", {Tokens("a", {1})}), answers.callback()).ok());
  EXPECT_EQ(stream->Finish(), absl::UnavailableError("going down"));
  EXPECT_THAT(answers.ids(), ElementsAre("good", "stuck"));
  EXPECT_EQ(answers.all()[1].status, absl::UnavailableError("going down"));
  EXPECT_EQ(stream->Send(CallOf("late", {Tokens("a", {1})}), answers.callback()),
            absl::UnavailableError("going down"));
}

TEST(EmbedStream, CancellingEndsWhatIsInFlight) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  Answers answers;
  const auto stream = client.OpenStream();
  ASSERT_TRUE(stream->Send(CallOf("stuck", {Tokens("a", {1099})}), answers.callback()).ok());
  stream->Cancel();
  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kCancelled);
  ASSERT_EQ(answers.all().size(), 1U);
  EXPECT_EQ(answers.all()[0].status.code(), absl::StatusCode::kCancelled);
}

TEST(EmbedStream, DestroyingItEndsWhatIsInFlight) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  Answers answers;
  auto stream = client.OpenStream();
  ASSERT_TRUE(stream->Send(CallOf("stuck", {Tokens("a", {1099})}), answers.callback()).ok());
  stream.reset();
  EXPECT_THAT(answers.ids(), UnorderedElementsAre("stuck"));
}

TEST(EmbedStream, AServerThatCannotBeReachedEndsTheStream) {
  ClientOptions options;
  options.target = "127.0.0.1:1";
  EmbeddingClient client(options);
  Answers answers;
  const auto stream = client.OpenStream();
  // The stream may have failed before the request was queued.
  stream->Send(CallOf("lost", {Tokens("a", {1})}), answers.callback()).IgnoreError();
  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace linserve
