#include <gmock/gmock.h>

#include "core/files/safetensors.h"
#include "core/tensor/comparison.h"
#include "support/half_precision.h"
#include "support/programs.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

// These tests try what needs a device with the simulated one, whose memory the host cannot touch.

constexpr int64_t kMebibyte = int64_t{1} << 20;

class DeviceTest : public ::testing::Test {
 protected:
  // Makes a Linformer of rows of 64 features, up to 16,384 of them.
  DeviceTest() {
    const Outcome made =
        RunLinserve({"init", "--architecture", "linformer.Linformer", "--params",
                     R"({"dim": 64, "seq_len": 16384, "depth": 2, "k": 16, "heads": 2})", "--seed",
                     "1", "--output", repository_.File("long")});
    EXPECT_EQ(made.code, 0) << made.err;
  }

  RunningServer Serve(const Arguments& more, const std::string& device = "simulated") const {
    Arguments arguments = {"--device", device, "--dtype", "f32", "--warmup", "false"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunningServer(repository_.File("."), arguments);
  }

  static NamedSequence Sequence(int64_t length) {
    const std::vector<float> values(static_cast<size_t>(64 * length), 0.5F);
    return {"", {{"x", Tensor::FromFloats({length, 64}, values)}}};
  }

  static std::string Memory(const std::string& what, const std::string& device) {
    return "linserve_device_memory_" + what + "_bytes{device=\"" + device + "\"}";
  }

  TempDir repository_;
};

TEST_F(DeviceTest, ServesAReplicaOnEachAndSaysWhatItsMemoryHolds) {
  RunningServer server = Serve({"--max-device-bytes", "1073741824"});
  ASSERT_TRUE(server.ready());
  const Scraped scraped = server.Scrape();
  for (const char* device : {"simulated:0", "simulated:1"}) {
    EXPECT_GT(scraped[Memory("used", device)], kMebibyte) << device;
    EXPECT_GE(scraped[Memory("reserved", device)], scraped[Memory("used", device)]) << device;
    EXPECT_EQ(scraped[Memory("limit", device)], 1073741824) << device;
  }
  EXPECT_EQ(scraped[R"(linserve_device_fallback{reason="no_plugin"})"], 0);
  EXPECT_EQ(server.Stop(), 0);
}

TEST_F(DeviceTest, ThatIsFullComputesABatchInHalvesAndRefusesWhatFitsInNone) {
  double weights = 0;
  {
    RunningServer server = Serve({"--replicas", "1"});
    ASSERT_TRUE(server.ready());
    weights = server.Scrape()[Memory("used", "simulated:0")];
  }
  const auto limit = static_cast<int64_t>(weights) + 6 * kMebibyte;
  RunningServer server = Serve({"--replicas", "1", "--max-device-bytes", std::to_string(limit)});
  ASSERT_TRUE(server.ready());
  EmbeddingClient client(server.client_options());
  EmbedCall call;
  call.options.pooling = Pooling::kMean;
  for (int i = 0; i < 32; ++i) call.sequences.push_back(Sequence(512));
  call.sequences.push_back(Sequence(16384));
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  for (int i = 0; i < 32; ++i) {
    EXPECT_TRUE(results->at(static_cast<size_t>(i)).status.ok()) << results->at(0).status;
  }
  EXPECT_THAT(results->at(32).status,
              IsStatus(absl::StatusCode::kResourceExhausted, "not enough memory on simulated:0"));
  const Scraped scraped = server.Scrape();
  EXPECT_GE(scraped[R"(linserve_batch_splits_total{model="long",reason="memory",version="1"})"], 2);
  EXPECT_EQ(scraped[R"(linserve_replicas_lost{model="long",version="1"})"], 0);
  EXPECT_EQ(server.Stop(), 0);
}

TEST_F(DeviceTest, ThatIsMissingKeepsTheServerFromStarting) {
  const Outcome outcome = RunLinserve({"serve", "--model-repository", repository_.File("."),
                                       "--device", "cuda:7", "--grpc-address", "127.0.0.1:0"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("device"));
  EXPECT_THAT(outcome.err, HasSubstr("cuda:7"));
}

TEST_F(DeviceTest, ThatNobodyAskedForInParticularMayBeTheCpuWhichIsSaid) {
  RunningServer server = Serve({}, "auto");
  ASSERT_TRUE(server.ready());
  const Scraped scraped = server.Scrape();
  double fallbacks = 0;
  for (const char* reason : {"no_plugin", "unusable_plugin", "no_device"}) {
    fallbacks += scraped["linserve_device_fallback{reason=\"" + std::string(reason) + "\"}"];
  }
  if (scraped[Memory("limit", "cuda:0")] > 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(fallbacks, 1);
  EXPECT_TRUE(server.process().WaitForOut("computing on the CPU"));
  EXPECT_EQ(server.Stop(), 0);
}

TEST_F(DeviceTest, GivesNearlyTheSameRowsInHalfPrecision) {
  const TempDir temporary;
  const std::string output = temporary.File("out.safetensors");
  for (const char* name : {"linformer-lm-basic", "lat-lm-rotary-local-causal", "lpt-stack-eps"}) {
    for (const char* dtype : {"bf16", "f16"}) {
      const std::string model = GoldensDirectory() + "/" + name;
      const std::string io = model + "/io.safetensors";
      const Outcome outcome = RunLinserve({"run", "--model", model, "--input", io, "--output",
                                           output, "--device", "simulated:1", "--dtype", dtype});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const auto computed = ReadSafetensors(output);
      const auto expected = ReadSafetensors(io);
      ASSERT_TRUE(computed.ok() && expected.ok());
      const auto comparison =
          Compare(computed->tensors.at("output.y"), expected->tensors.at("output.y"));
      ASSERT_TRUE(comparison.ok()) << comparison.status();
      EXPECT_GE(comparison->smallest_cosine, 0.999) << name << " in " << dtype;
    }
  }
}

TEST_F(DeviceTest, ComputesLinearAttentionNearlyAsTheCpuDoes) {
  ExpectLinearAttentionNearlyAsOnTheCpu("simulated:0", 320);
}

TEST_F(DeviceTest, HasF16WhichTheCpuHasNot) {
  const std::string model = GoldensDirectory() + "/linformer-lm-basic";
  const Outcome outcome =
      RunLinserve({"run", "--model", model, "--input", model + "/io.safetensors", "--output",
                   repository_.File("out"), "--dtype", "f16"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("is not for this CPU, which computes in f32"));
}

}  // namespace
}  // namespace linserve
