#include "rpc/embedding/result_chunker.h"

#include <numeric>

#include "rpc/parsed.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;

ItemResult ResultOf(TensorMap outputs) {
  ItemResult result;
  result.outputs = std::move(outputs);
  result.tokens = 5;
  result.timing.queue = std::chrono::nanoseconds(11);
  result.timing.batch_sequences = 2;
  return result;
}

Tensor Counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(ElementCount(shape)));
  std::iota(values.begin(), values.end(), 0.0F);
  return Tensor::FromFloats(shape, values);
}

std::vector<v1::EmbedResponse> Messages(const ChunkOptions& options,
                                        absl::StatusOr<ItemResult> result) {
  ResultChunker chunker(options, 3, "name", std::move(result), nullptr);
  std::vector<v1::EmbedResponse> messages;
  do {
    WireMessage wire;
    const bool last = chunker.Next(wire);
    messages.push_back(Parsed<v1::EmbedResponse>(std::move(wire).Take()));
    EXPECT_EQ(last, messages.back().last());
  } while (!messages.back().last());
  return messages;
}

// Returns the sizes of the first axis of all messages.
std::vector<int64_t> RowCounts(const std::vector<v1::EmbedResponse>& messages) {
  std::vector<int64_t> counts;
  for (const auto& message : messages) counts.push_back(message.rows().shape(0));
  return counts;
}

TEST(ResultChunker, EveryMessageTellsWhatItBelongsTo) {
  const auto messages =
      Messages({.request_id = "r", .rows_per_chunk = 2}, ResultOf({{"y", Counting({5, 3})}}));
  EXPECT_THAT(RowCounts(messages), ElementsAre(2, 2, 1));
  std::string bytes;
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].request_id(), "r");
    EXPECT_EQ(messages[i].index(), 3U);
    EXPECT_EQ(messages[i].sequence_id(), "name");
    EXPECT_EQ(messages[i].output(), "y");
    EXPECT_EQ(messages[i].row_offset(), 2 * i);
    EXPECT_EQ(messages[i].total_rows(), 5U);
    EXPECT_EQ(messages[i].tokens(), 5U);
    EXPECT_EQ(messages[i].has_timing(), i == 2);
    bytes += messages[i].rows().data();
  }
  const Tensor y = Counting({5, 3});
  EXPECT_EQ(bytes, std::string(reinterpret_cast<const char*>(y.bytes()), y.byte_size()));
  EXPECT_EQ(messages[2].timing().queue_ns(), 11U);
  EXPECT_EQ(messages[2].timing().batch_sequences(), 2U);
}

TEST(ResultChunker, WithoutANumberOfRowsMessagesAreOfAboutTheServersSize) {
  const auto rows = [](int64_t chunk_bytes) {
    return RowCounts(Messages({.request_id = "r", .chunk_bytes = chunk_bytes},
                              ResultOf({{"y", Counting({5, 3})}})));
  };
  EXPECT_THAT(rows(60), ElementsAre(5));
  EXPECT_THAT(rows(59), ElementsAre(4, 1));
  EXPECT_THAT(rows(12), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(rows(1), ElementsAre(1, 1, 1, 1, 1));
}

TEST(ResultChunker, OutputsFollowOneAnother) {
  const auto messages = Messages({.request_id = "r", .rows_per_chunk = 2},
                                 ResultOf({{"y", Counting({3, 1})}, {"z", Counting({2, 2})}}));
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[1].output(), "y");
  EXPECT_EQ(messages[1].row_offset(), 2U);
  EXPECT_EQ(messages[2].output(), "z");
  EXPECT_EQ(messages[2].row_offset(), 0U);
  EXPECT_FALSE(messages[1].has_timing());
  EXPECT_TRUE(messages[2].has_timing());
}

TEST(ResultChunker, APooledVectorIsOneRowWithoutARowAxis) {
  const auto messages =
      Messages({.request_id = "r", .rows_per_chunk = 1}, ResultOf({{"y", Counting(Shape{4})}}));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0].rows().shape(), ElementsAre(4));
  EXPECT_EQ(messages[0].total_rows(), 1U);
}

TEST(ResultChunker, AFaultIsOneMessage) {
  const auto messages = Messages({.request_id = "r"}, absl::InvalidArgumentError("bad"));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].code(), 3);
  EXPECT_EQ(messages[0].message(), "bad");
  EXPECT_EQ(messages[0].index(), 3U);
  EXPECT_EQ(messages[0].sequence_id(), "name");
  EXPECT_FALSE(messages[0].request_failed());
  EXPECT_FALSE(messages[0].has_rows());
}

TEST(ResultChunker, AFaultOfTheRequestSaysSo) {
  const auto chunker = ResultChunker::RequestFailed("r", absl::NotFoundError("no model"), nullptr);
  WireMessage wire;
  EXPECT_TRUE(chunker->Next(wire));
  const auto message = Parsed<v1::EmbedResponse>(std::move(wire).Take());
  EXPECT_TRUE(message.request_failed());
  EXPECT_TRUE(message.last());
  EXPECT_EQ(message.request_id(), "r");
  EXPECT_EQ(message.code(), 5);
}

TEST(ResultChunker, KeepsAliveWhatItWasGivenUntilItsEnd) {
  auto owner = std::make_shared<int>(1);
  {
    ResultChunker chunker(ChunkOptions(), 0, "", absl::InternalError(""), owner);
    ResultChunker moved = std::move(chunker);
    EXPECT_EQ(owner.use_count(), 2);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(ResultChunker, ASessionTellsItsPositionAtTheEnd) {
  ItemResult result = ResultOf({{"y", Counting({5, 3})}});
  result.position = 12;
  const auto messages = Messages({.request_id = "r", .rows_per_chunk = 3}, result);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_FALSE(messages[0].has_session());
  EXPECT_EQ(messages[1].session().position(), 12U);
  EXPECT_FALSE(Messages({}, ResultOf({{"y", Counting({5, 3})}}))[0].has_session());
}

TEST(ResultChunker, ASavedSessionFollowsTheRowsInChunks) {
  ItemResult result = ResultOf({{"y", Counting({1, 3})}});
  result.position = 7;
  result.session = "0123456789";
  const auto messages = Messages({.request_id = "r", .chunk_bytes = 4}, result);
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_TRUE(messages[0].has_rows());
  std::string saved;
  for (const auto& message : messages) {
    EXPECT_EQ(message.request_id(), "r");
    EXPECT_LE(message.session().state().size(), 4U);
    saved += message.session().state();
  }
  EXPECT_EQ(saved, "0123456789");
  EXPECT_EQ(messages[3].session().position(), 7U);
  EXPECT_TRUE(messages[3].has_timing());
}

TEST(ResultChunker, ARefusedChunkTellsFromWhereToSend) {
  const auto messages = Messages({}, ResumeFrom(absl::FailedPreconditionError("gone"), 40));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(messages[0].session().position(), 40U);
}

}  // namespace
}  // namespace linserve
