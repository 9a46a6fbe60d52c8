#include "core/files/safetensors.h"
#include "core/tensor/comparison.h"
#include "support/golden_case.h"
#include "support/programs.h"
#include "support/served_golden.h"

namespace linserve {
namespace {

void ExpectServes(EmbeddingClient& client, const GoldenCase& golden) {
  for (const SequenceResult& result : Embed(client, golden)) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    for (const std::string& name : golden.outputs()) {
      EXPECT_LE(golden.Distance(name, result.outputs.at(name), result.index), golden.tolerance())
          << name << " of sequence " << result.index;
    }
  }
}

void ExpectServesNearly(EmbeddingClient& client, const GoldenCase& golden) {
  for (const SequenceResult& result : Embed(client, golden)) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    const std::string name = golden.outputs()[0];
    const auto comparison = Compare(result.outputs.at(name), golden.Output(name, result.index));
    ASSERT_TRUE(comparison.ok()) << comparison.status();
    EXPECT_GE(comparison->smallest_cosine, 0.999) << "sequence " << result.index;
  }
}

// Expects that the program linserve-client embeds the case's file as it is.
void ExpectEmbedsTheFile(const RunningServer& server, const GoldenCase& golden) {
  const TempDir temporary;
  const std::string output = temporary.File("out.safetensors");
  Arguments arguments = {"embed",         golden.directory() + "/io.safetensors",
                         "--batched",     "--target",
                         server.target(), "--model",
                         golden.name(),   "--pooling",
                         "none",          "--output",
                         output};
  const std::vector<std::string> names = golden.outputs();
  for (const std::string& name : names) {
    arguments.insert(arguments.end(), {"--output-name", name});
  }
  const Outcome outcome = RunClient(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto results = ReadSafetensors(output);
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < golden.sequences(); ++i) {
    for (const std::string& name : names) {
      const std::string key = std::to_string(i) + (names.size() > 1 ? "." + name : "");
      ASSERT_TRUE(results->tensors.contains(key)) << key;
      EXPECT_LE(golden.Distance(name, results->tensors.at(key), i), golden.tolerance()) << key;
    }
  }
}

struct ServeCase {
  std::string padding;
  std::string device = "cpu";
};

class GoldenServeTest : public ::testing::TestWithParam<ServeCase> {};

// All cases are served as one repository. The packages' own padding is another computation, so a
// case belongs to it or to all other paddings.
TEST_P(GoldenServeTest, GivesThePackagesNumbers) {
  const bool zeros = GetParam().padding == "zeros";
  std::vector<GoldenCase> cases = GoldenCases(GoldensDirectory());
  std::erase_if(cases, [&](const GoldenCase& golden) { return golden.needs_zeros() != zeros; });
  const TempDir repository;
  LinkCases(cases, repository);
  Arguments arguments = {"--padding", GetParam().padding, "--device", GetParam().device, "--dtype",
                         "f32",       "--threads",        "1",        "--follow-links",  "true"};
  // A simulated device takes long for what it would be warmed up with.
  if (GetParam().device != "cpu") arguments.insert(arguments.end(), {"--warmup", "false"});
  RunningServer server(repository.File("."), arguments);
  ASSERT_TRUE(server.ready());
  EmbeddingClient client(server.client_options());
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name());
    ExpectServes(client, golden);
    if (GetParam().device == "cpu") ExpectEmbedsTheFile(server, golden);  // a device takes long
  }
  EXPECT_EQ(server.Stop(), 0);
}

// F16 has few numbers, so that what is large in F32 is infinite there, or refused by a GPU.
TEST(GoldenServe, GivesNearlyThePackagesNumbersInF16OnADevice) {
  std::vector<GoldenCase> cases = GoldenCases(GoldensDirectory());
  std::erase_if(cases, [](const GoldenCase& golden) {
    return golden.needs_zeros() || !golden.compares_in_16_bits();
  });
  const TempDir repository;
  LinkCases(cases, repository);
  RunningServer server(repository.File("."),
                       {"--padding", "packed", "--device", "simulated:1", "--dtype", "f16",
                        "--threads", "1", "--follow-links", "true", "--warmup", "false"});
  ASSERT_TRUE(server.ready());
  EmbeddingClient client(server.client_options());
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name());
    ExpectServesNearly(client, golden);
  }
  EXPECT_EQ(server.Stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Padding, GoldenServeTest,
                         ::testing::Values(ServeCase{"packed"}, ServeCase{"bucket"},
                                           ServeCase{"fixed"}, ServeCase{"zeros"},
                                           ServeCase{"packed", "simulated"},
                                           ServeCase{"bucket", "simulated"},
                                           ServeCase{"zeros", "simulated:1"}),
                         [](const auto& golden) {
                           const bool on_cpu = golden.param.device == "cpu";
                           return golden.param.padding + (on_cpu ? "" : "OnADevice");
                         });

}  // namespace
}  // namespace linserve
