#include "client/library/embed_chunks.h"

#include <gmock/gmock.h>

#include "client/terminal/progress.h"

namespace linserve {
namespace {

using testing::ElementsAre;

EmbedCall CallOfRows(int64_t rows) {
  EmbedCall call{.model = "m", .options = {}};
  call.options.pooling = Pooling::kMean;
  call.priority = Priority::kHigh;
  call.chunk_bytes = 4 * 2 * sizeof(float);
  const std::vector<float> values(static_cast<size_t>(2 * rows), 1);
  call.sequences.push_back({"s",
                            {{"x", Tensor::FromFloats({rows, 2}, values)},
                             {"context", Tensor::FromFloats({1, 2}, {1, 2})}}});
  return call;
}

TEST(ChunkRequests, HoldAllRowsInOrderAndTheRestOfTheCallOnce) {
  const EmbedCall call = CallOfRows(10);
  ChunkRequests chunks(call, 0);
  std::vector<uint64_t> first_rows;
  std::vector<int64_t> rows;
  while (const auto chunk = chunks.Next()) {
    ASSERT_EQ(chunk->sequences_size(), 1);
    const v1::Sequence& sequence = chunk->sequences(0);
    const bool first = first_rows.empty();
    EXPECT_EQ(chunk->model(), first ? "m" : "");
    EXPECT_EQ(chunk->has_options(), first);
    EXPECT_EQ(sequence.id(), first ? "s" : "");
    EXPECT_EQ(sequence.inputs_size(), first ? 1 : 0);
    EXPECT_EQ(sequence.total_rows(), 10u);
    first_rows.push_back(sequence.first_row());
    rows.push_back(sequence.x().shape(0));
  }
  EXPECT_THAT(first_rows, ElementsAre(0, 4, 8));
  EXPECT_THAT(rows, ElementsAre(4, 4, 2));
  EXPECT_EQ(chunks.rows(), 10);
}

TEST(ChunkRequests, AreForOneLargeSequenceThatIsNoChunk) {
  EXPECT_TRUE(GoesInChunks(CallOfRows(5), {0}));
  EXPECT_FALSE(GoesInChunks(CallOfRows(4), {0}));
  EmbedCall call = CallOfRows(5);
  EXPECT_FALSE(GoesInChunks(call, {0, 0}));
  call.sequences[0].session = SessionChunk{.id = "s"};
  EXPECT_FALSE(GoesInChunks(call, {0}));
  call = CallOfRows(5);
  call.chunk_bytes = 0;
  EXPECT_FALSE(GoesInChunks(call, {0}));
  call = CallOfRows(5);
  call.sequences[0].inputs.erase("x");
  EXPECT_FALSE(GoesInChunks(call, {0}));
}

TEST(ProgressText, SaysWhatIsDoneWithALongSequence) {
  EmbedProgress progress{.index = 0, .rows = 400, .rows_sent = 100};
  EXPECT_THAT(ProgressText(progress, 2), testing::StartsWith("sending ["));
  EXPECT_THAT(ProgressText(progress, 2), testing::HasSubstr("100/400  50.0/s"));
  progress.computed = ItemProgress{.layers_done = 1, .layers = 4, .rows_done = 200, .rows = 400};
  EXPECT_THAT(ProgressText(progress, 3), testing::StartsWith("computing ["));
  EXPECT_THAT(ProgressText(progress, 3), testing::HasSubstr("150/400  50.0/s  layer 2 of 4"));
  progress.rows_received = 300;
  EXPECT_THAT(ProgressText(progress, 3), testing::StartsWith("receiving ["));
}

}  // namespace
}  // namespace linserve
