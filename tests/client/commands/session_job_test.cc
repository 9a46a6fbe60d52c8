#include "client/commands/session_job.h"

#include <gtest/gtest.h>

#include <vector>

#include "client/fake_server.h"

namespace linserve {
namespace {

constexpr int64_t kRows = 10;

// Sends one sequence in chunks of three rows.
SequenceResult Sent(FakeFaults faults) {
  FakeServer server(faults);
  EmbeddingClient client(server.client_options());
  SessionJobOptions job;
  job.chunk_rows = 3;
  job.signature = client.GetModel("", 0)->signature;
  InputSequences sequences(1);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kRows; ++i) ids.push_back(i);
  sequences[0].inputs["x"] = Tensor::FromInts({kRows}, ids);
  SequenceResult result;
  RunSessionJob(
      client, job, sequences, [](int64_t) {},
      [&](const JobResult& answer) { result = answer.result; });
  return result;
}

TEST(SessionJob, BeginsAgainWhereASessionIsNotWhereItWasLeft) {
  for (const int faults : {0, 1, 3}) {
    const SequenceResult result = Sent({.misplaced_chunks = faults});
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.tokens, kRows);
    const Tensor& rows = result.outputs.at("y");
    ASSERT_EQ(rows.shape(), (Shape{kRows, 3}));
    for (int64_t i = 0; i < kRows; ++i) EXPECT_EQ(rows.data<float>()[3 * i], i);
  }
}

TEST(SessionJob, GivesUpWhereThatDoesNotHelp) {
  const SequenceResult result = Sent({.misplaced_chunks = 100});
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status)) << result.status;
}

}  // namespace
}  // namespace linserve
