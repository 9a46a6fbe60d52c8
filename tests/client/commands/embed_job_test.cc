#include "client/commands/embed_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/fake_server.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

InputSequences Lines(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += std::string(i % 5 + 1, 'a') + '\n';
  return ParseTextLines(text, {});
}

std::vector<SequenceResult> RunAll(EmbeddingClient& client, size_t batch, size_t in_flight,
                                   const InputSequences& sequences) {
  EmbedJobOptions options;
  options.batch = batch;
  options.in_flight = in_flight;
  std::vector<SequenceResult> results;
  RunEmbedJob(client, options, sequences,
              [&](const JobResult& answer) { results.push_back(answer.result); });
  return results;
}

TEST(Groups, AreCutByNumber) {
  EXPECT_THAT(CutIntoGroups({1, 1, 1, 1, 1}, 2, 100),
              ElementsAre(Pair(0, 2), Pair(2, 4), Pair(4, 5)));
}

TEST(Groups, AreCutByBytesAndHoldAtLeastOneSequence) {
  EXPECT_THAT(CutIntoGroups({4, 6, 1, 50, 3}, 10, 10),
              ElementsAre(Pair(0, 2), Pair(2, 3), Pair(3, 4), Pair(4, 5)));
}

TEST(Groups, OfNothingAreNone) { EXPECT_TRUE(CutIntoGroups({}, 10, 10).empty()); }

TEST(EmbedJob, ResultsAreInTheOrderOfTheInput) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  const auto results = RunAll(client, 3, 4, Lines(100));
  ASSERT_EQ(results.size(), 100U);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].index, i);
    EXPECT_EQ(results[i].id, std::to_string(i + 1));
    EXPECT_TRUE(results[i].status.ok()) << results[i].status;
    EXPECT_EQ(results[i].tokens, static_cast<int64_t>(i % 5 + 1));
  }
  EXPECT_EQ(server.service().calls().size(), 34U);
}

TEST(EmbedJob, IsOneRequestForAModelThatMixesTheSequencesOfACall) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  EmbedJobOptions options;
  options.batch = 3;
  options.batch_bytes = 10;
  options.one_request = true;
  size_t results = 0;
  RunEmbedJob(client, options, Lines(20), [&](const JobResult&) { ++results; });
  EXPECT_EQ(results, 20U);
  EXPECT_EQ(server.service().calls().size(), 1U);
}

TEST(EmbedJob, BadLinesKeepTheirPlaceAndLoseNothingElse) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  const auto results = RunAll(client, 2, 4, ParseIdLines("[1]\nbad\n[1013]\n[2]", {}));
  ASSERT_EQ(results.size(), 4U);
  EXPECT_TRUE(results[0].status.ok());
  EXPECT_EQ(results[1].status, absl::InvalidArgumentError("line 2: not JSON"));
  EXPECT_EQ(results[2].status, absl::InvalidArgumentError("token 1013 brings bad luck"));
  EXPECT_TRUE(results[3].status.ok());
}

TEST(EmbedJob, OfBadLinesAloneSendsNothing) {
  FakeServer server;
  EmbeddingClient client(server.client_options());
  EmbedJobOptions options;
  options.on_progress = [](const EmbedProgress&) {};
  std::vector<absl::Status> told;
  RunEmbedJob(client, options, ParseIdLines("bad\nworse\n", {}),
              [&](const JobResult& answer) { told.push_back(answer.result.status); });
  EXPECT_THAT(told, ElementsAre(absl::InvalidArgumentError("line 1: not JSON"),
                                absl::InvalidArgumentError("line 2: not JSON")));
  EXPECT_TRUE(server.service().calls().empty());
}

TEST(EmbedJob, DoesNotAskAnUnavailableServerForEveryGroup) {
  FakeServer server({.refuse_calls = 1000});
  EmbeddingClient client(server.client_options());
  const auto results = RunAll(client, 1, 1, Lines(20));
  ASSERT_EQ(results.size(), 20U);
  for (const auto& result : results) EXPECT_EQ(result.status, absl::UnavailableError("loading"));
  EXPECT_EQ(server.service().calls().size(), 4U);
}

}  // namespace
}  // namespace linserve
