#include "client/load/null_server/null_server.h"

#include <gtest/gtest.h>

#include <sstream>

#include "client/fake_server.h"
#include "client/load/null_server/null_server_process.h"

namespace linserve {
namespace {

EmbedCall TwoSequences() {
  EmbedCall call;
  call.sequences = {Tokens("a", {1, 2, 3}), Tokens("b", {1, 2, 3, 4, 5})};
  return call;
}

TEST(NullServer, AnswersEveryCallAsTheServerDidThatWasRecorded) {
  const EmbedCall call = TwoSequences();
  absl::StatusOr<RecordedAnswer> answer;
  {
    const FakeServer real;
    answer = RecordAnswer(real.client_options(), call);
  }
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto server = NullServer::Start(*answer);
  ASSERT_TRUE(server.ok()) << server.status();
  ClientOptions options;
  options.target = "127.0.0.1:" + std::to_string((*server)->port());
  EmbeddingClient client(options);
  for (int i = 0; i < 3; ++i) {
    const auto results = client.Embed(call);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(results->at(0).id, "a");
    EXPECT_EQ(results->at(1).tokens, 5);
    EXPECT_EQ(results->at(1).outputs.at("y").shape(), (Shape{5, 3}));
  }
}

TEST(NullServer, IsNotMadeOfAServerThatDoesNotAnswer) {
  ClientOptions options;
  options.target = "127.0.0.1:1";
  EXPECT_TRUE(absl::IsUnavailable(RecordAnswer(options, TwoSequences()).status()));
}

TEST(RecordedAnswer, IsReadAsItWasWritten) {
  const RecordedAnswer answer = {"one", "", std::string("t\0wo\n 3", 7)};
  std::stringstream stream;
  Write(answer, stream);
  EXPECT_EQ(*ReadRecordedAnswer(stream), answer);
  for (const char* bad : {"", "2 3", "1 4\nabc", "x", "99999999999999999999 1"}) {
    std::istringstream input(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(ReadRecordedAnswer(input).status())) << bad;
  }
}

}  // namespace
}  // namespace linserve
