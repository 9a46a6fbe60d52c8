#include <algorithm>
#include <limits>
#include <random>

#include "core/files/npy.h"
#include "core/files/safetensors.h"
#include "core/tensor/comparison.h"
#include "support/programs.h"

namespace linserve {
namespace {

constexpr int64_t kLongRows = 20000;
constexpr int64_t kWidth = 64;

std::vector<float> Floats(int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> floats(static_cast<size_t>(count));
  for (float& value : floats) value = normal(random);
  return floats;
}

double LargestDifference(const Tensor& a, const Tensor& b) {
  const auto compared = Compare(a, b);
  EXPECT_TRUE(compared.ok()) << compared.status();
  return compared.ok() ? compared->largest : std::numeric_limits<double>::infinity();
}

void Init(const std::string& directory) {
  const Outcome made = RunLinserve(
      {"init", "--architecture", "linformer_pytorch.Linformer", "--seed", "4", "--params",
       R"({"input_size": 20000, "channels": 64, "dim_k": 16, "dim_ff": 64, "nhead": 4,
                       "depth": 3})",
       "--output", directory});
  ASSERT_EQ(made.code, 0) << made.err;
}

// No message is large, and the server takes no large one.
TEST(LongInput, ComesAndGoesInChunksWithTheRowsOfOneThatIsRunAtOnce) {
  TempDir directory;
  Init(directory.File("models/long"));
  const Tensor x = Tensor::FromFloats({kLongRows, kWidth}, Floats(kLongRows * kWidth));
  ASSERT_TRUE(WriteNpy(directory.File("x.npy"), x).ok());
  RunningServer server(directory.File("models"), {"--max-message-bytes", "4194304"});
  const Outcome embedded = RunClient({"embed", directory.File("x.npy"), "--target", server.target(),
                                      "--pooling", "none", "--output", directory.File("rows.npy")});
  ASSERT_EQ(embedded.code, 0) << embedded.err;
  EXPECT_EQ(server.Scrape()[R"(linserve_requests_total{code="OK",model="long",rpc="EmbedStream"})"],
            1);

  ASSERT_TRUE(WriteSafetensors(directory.File("x.safetensors"),
                               {{"input.x", x.Reshaped({1, kLongRows, kWidth})}})
                  .ok());
  const Outcome run =
      RunLinserve({"run", "--model", directory.File("models/long"), "--input",
                   directory.File("x.safetensors"), "--output", directory.File("y.safetensors")});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto rows = ReadNpy(directory.File("rows.npy"));
  const auto y = ReadSafetensors(directory.File("y.safetensors"));
  ASSERT_TRUE(rows.ok() && y.ok());
  EXPECT_LT(LargestDifference(*rows, y->tensors.at("output.y")), 1e-5F);
  EXPECT_TRUE(server.WaitFor("linserve_inflight_bytes", 0));
}

TEST(LongInput, TellsHowFarItIs) {
  TempDir directory;
  Init(directory.File("models/long"));
  RunningServer server(directory.File("models"));
  EmbeddingClient client(server.client_options());
  EmbedCall call{.model = "long", .options = {}};
  call.sequences.push_back(
      {"s", {{"x", Tensor::FromFloats({kLongRows, kWidth}, Floats(kLongRows * kWidth))}}});
  call.chunk_bytes = 1 << 20;
  std::vector<EmbedProgress> told;
  call.on_progress = [&](const EmbedProgress& progress) { told.push_back(progress); };
  ASSERT_TRUE(client.Embed(call).ok());
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().rows_sent, kLongRows);
  EXPECT_EQ(told.back().rows_received, kLongRows);
  for (const EmbedProgress& progress : told) {
    if (!progress.computed) continue;
    EXPECT_EQ(progress.computed->layers, 3);
    EXPECT_EQ(progress.computed->rows, kLongRows);
    EXPECT_LT(progress.computed->layers_done, 3);
  }
}

}  // namespace
}  // namespace linserve
