#include "core/files/safetensors.h"
#include "core/tensor/comparison.h"
#include "support/golden_case.h"
#include "support/half_precision.h"
#include "support/programs.h"
#include "support/served_golden.h"

namespace linserve {
namespace {

// These tests are labelled `gpu`: without an NVIDIA GPU that the plug-in can use they say so and
// are skipped.

constexpr const char* kDevice = "cuda:0";

Outcome TryGpu() {
  const std::string model = GoldensDirectory() + "/linformer-lm-basic";
  const TempDir temporary;
  return RunLinserve({"run", "--model", model, "--input", model + "/io.safetensors", "--output",
                      temporary.File("out"), "--device", kDevice});
}

class GpuTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Outcome outcome = TryGpu();
    if (outcome.code != 0) GTEST_SKIP() << outcome.err;
  }

  // Returns the cases that `zeros` is true or false for, for a repository.
  static std::vector<GoldenCase> Cases(bool zeros) {
    std::vector<GoldenCase> cases = GoldenCases(GoldensDirectory());
    std::erase_if(cases, [&](const GoldenCase& golden) { return golden.needs_zeros() != zeros; });
    return cases;
  }

  // Calls function(client, some) with a server of some of the cases each, until all had one: what
  // is recorded of a hundred models takes more than a minute.
  template <typename Function>
  static void ForServers(const std::vector<GoldenCase>& cases, const Arguments& more,
                         const Function& function) {
    constexpr size_t kModels = 16;
    // No case has more tokens, and models are warmed up with as many.
    Arguments arguments = {"--device",           kDevice, "--follow-links", "true",
                           "--max-batch-tokens", "4096"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (size_t first = 0; first < cases.size(); first += kModels) {
      const std::vector<GoldenCase> some(
          cases.begin() + static_cast<int64_t>(first),
          cases.begin() + static_cast<int64_t>(std::min(first + kModels, cases.size())));
      const TempDir repository;
      LinkCases(some, repository);
      RunningServer server(repository.File("."), arguments);
      EXPECT_TRUE(server.ready()) << "from " << some.front().name() << " on";
      if (!server.ready()) continue;
      EmbeddingClient client(server.client_options());
      function(client, some);
      EXPECT_EQ(server.Stop(), 0);
    }
  }
};

TEST_P(GpuTest, GivesThePackagesNumbersInF32) {
  const std::vector<GoldenCase> cases = Cases(GetParam() == "zeros");
  double largest = 0;
  int64_t compared = 0;
  // In F32 no pass is recorded, so that there is nothing to warm up.
  ForServers(cases, {"--padding", GetParam(), "--dtype", "f32", "--warmup", "false"},
             [&](EmbeddingClient& client, const std::vector<GoldenCase>& some) {
               for (const GoldenCase& golden : some) {
                 SCOPED_TRACE(golden.name());
                 for (const SequenceResult& result : Embed(client, golden)) {
                   ASSERT_TRUE(result.status.ok()) << result.status;
                   for (const std::string& name : golden.outputs()) {
                     const double distance =
                         golden.Distance(name, result.outputs.at(name), result.index);
                     EXPECT_LE(distance, 1e-4) << name << " of sequence " << result.index;
                     largest = std::max(largest, distance);
                     ++compared;
                   }
                 }
               }
             });
  std::printf("%s in f32 on %s: largest error %.2g of %ld outputs\n", GetParam().c_str(), kDevice,
              largest, compared);
}

TEST_P(GpuTest, GivesNearlyTheSameRowsInHalfPrecision) {
  std::vector<GoldenCase> cases = Cases(GetParam() == "zeros");
  std::erase_if(cases, [](const GoldenCase& golden) { return !golden.compares_in_16_bits(); });
  for (const char* dtype : {"bf16", "f16"}) {
    double smallest = 1;
    int64_t compared = 0;
    ForServers(cases, {"--padding", GetParam(), "--dtype", dtype},
               [&](EmbeddingClient& client, const std::vector<GoldenCase>& some) {
                 for (const GoldenCase& golden : some) {
                   SCOPED_TRACE(golden.name() + " in " + dtype);
                   for (const SequenceResult& result : Embed(client, golden)) {
                     ASSERT_TRUE(result.status.ok()) << result.status;
                     const std::string name = golden.outputs()[0];
                     const auto comparison =
                         Compare(result.outputs.at(name), golden.Output(name, result.index));
                     ASSERT_TRUE(comparison.ok()) << comparison.status();
                     EXPECT_GE(comparison->smallest_cosine, 0.999) << "sequence " << result.index;
                     smallest = std::min(smallest, comparison->smallest_cosine);
                     ++compared;
                   }
                 }
               });
    std::printf("%s in %s on %s: smallest cosine %.6f of %ld sequences\n", GetParam().c_str(),
                dtype, kDevice, smallest, compared);
  }
}

// The sequence is long enough to be computed in several parts.
TEST(GpuKernels, ComputeLinearAttentionNearlyAsTheCpuDoes) {
  const Outcome outcome = TryGpu();
  if (outcome.code != 0) GTEST_SKIP() << outcome.err;
  ExpectLinearAttentionNearlyAsOnTheCpu(kDevice, 70);
  ExpectLinearAttentionNearlyAsOnTheCpu(kDevice, 2600);
}

// The first length is one of passes that are recorded.
TEST(GpuKernels, ComputeLinformersNearlyAsTheCpuDoes) {
  const Outcome outcome = TryGpu();
  if (outcome.code != 0) GTEST_SKIP() << outcome.err;
  ExpectLinformersNearlyAsOnTheCpu(kDevice, 70);
  ExpectLinformersNearlyAsOnTheCpu(kDevice, 4096);
}

INSTANTIATE_TEST_SUITE_P(Padding, GpuTest, ::testing::Values("packed", "bucket", "zeros"),
                         [](const auto& padding) { return padding.param; });

}  // namespace
}  // namespace linserve
