#include "core/system/memory.h"

#include <string>

#include "core/files/safetensors.h"
#include "support/programs.h"

namespace linserve {
namespace {

// 42 million weights are 162 MiB in F32, 81 in the file.
TEST(Memory, OfALoadIsLittleMoreThanTheFileAndWhatIsKept) {
  const TempDir directory;
  const std::string params = R"({"vocab_size": 100, "hidden_size": 768, "num_hidden_layers": 6,
      "num_attention_heads": 12, "intermediate_size": 3072})";
  const Outcome made = RunLinserve({"init", "--architecture", "transformers.BertModel", "--params",
                                    params, "--output", directory.File("models/model")});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string path = directory.File("models/model/model.safetensors");
  {
    TensorMap tensors = ReadSafetensors(path)->tensors;
    for (auto& [name, tensor] : tensors) tensor = *Convert(tensor, DType::kBF16);
    ASSERT_TRUE(WriteSafetensors(path, tensors).ok());
  }
  for (const char* dtype : {"bf16", "int8"}) {
    if (!CpuComputesIn(dtype)) continue;
    RunningServer server(directory.File("models"), {"--dtype", dtype});
    ASSERT_TRUE(server.ready());
    // With all weights in F32 at once it was 366 MiB and more.
    EXPECT_LT(PeakResidentBytes(std::to_string(server.process().pid())), 320 << 20) << dtype;
  }
}

// Lengths of all kinds have a kernel made for each of them in BF16, of which few are kept.
TEST(Memory, StaysBoundedWhateverLengthsComeInBf16) {
  if (!CpuComputesIn("bf16")) GTEST_SKIP() << "this CPU has no kernels for bf16";
  const TempDir directory;
  const std::string params =
      R"({"num_tokens": 1000, "dim": 256, "seq_len": 512, "depth": 2, "heads": 8, "k": 128})";
  const Outcome made = RunLinserve({"init", "--architecture", "linformer.LinformerLM", "--params",
                                    params, "--output", directory.File("models/model")});
  ASSERT_EQ(made.code, 0) << made.err;
  RunningServer server(directory.File("models"), {"--dtype", "bf16", "--threads", "1", "--replicas",
                                                  "1", "--max-batch-sequences", "1"});
  ASSERT_TRUE(server.ready());
  const Outcome load = RunClient({"load", "--target", server.target(), "--lengths", "uniform:1,512",
                                  "--requests", "400", "--pooling", "mean", "--json", "-"});
  ASSERT_EQ(load.code, 0) << load.err;
  constexpr double kMost = 250 << 20;  // with a kernel for each number of rows it was 700 MiB
  EXPECT_LT(server.Scrape()["process_resident_memory_bytes"], kMost);
}

}  // namespace
}  // namespace linserve
