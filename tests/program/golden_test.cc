#include <algorithm>
#include <filesystem>

#include "commands.h"
#include "core/comparison.h"
#include "core/safetensors.h"
#include "support/golden_case.h"
#include "support/programs.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;

// `linserve` with these arguments, in this process: all cases together load LibTorch once.
int RunHere(Arguments arguments) {
  arguments.insert(arguments.begin(), "linserve");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  return RunProgram(static_cast<int>(arguments.size()), words.data());
}

// What `run` makes of the case's inputs.
TensorMap OutputsOf(const GoldenCase& golden, const std::string& dtype) {
  const TempDir temporary;
  const std::string output = temporary.File("out.safetensors");
  const std::string input = golden.directory() + "/io.safetensors";
  const std::string padding = golden.needs_zeros() ? "zeros" : "packed";
  EXPECT_EQ(RunHere({"run", "--model", golden.directory(), "--input", input, "--output", output,
                     "--padding", padding, "--dtype", dtype, "--threads", "1"}),
            0);
  const auto computed = ReadSafetensors(output);
  EXPECT_TRUE(computed.ok()) << computed.status();
  return computed.ok() ? computed->tensors : TensorMap();
}

void ExpectRuns(const GoldenCase& golden) {
  const TensorMap computed = OutputsOf(golden, "f32");
  for (const std::string& name : golden.outputs()) {
    const auto found = computed.find("output." + name);
    ASSERT_NE(found, computed.end()) << name;
    const double distance = golden.Distance(name, found->second);
    EXPECT_LE(distance, golden.tolerance())
        << name << ToString(found->second.shape()) << " for "
        << ToString(golden.tensors().at("output." + name).shape());
    std::printf("%s %s: largest error %.2g\n", golden.name().c_str(), name.c_str(), distance);
  }
}

class GoldenRunTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenRunTest, GivesThePackagesNumbers) { ExpectRuns(GetParam()); }

TEST_P(GoldenRunTest, GivesNearlyTheSameRowsInBf16) {
  const GoldenCase& golden = GetParam();
  if (golden.depth() < 2 || golden.compares_valid_rows_only()) return;
  const TensorMap computed = OutputsOf(golden, "bf16");
  ASSERT_TRUE(computed.contains("output.y"));
  const auto comparison = Compare(computed.at("output.y"), golden.tensors().at("output.y"));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_GE(comparison->smallest_cosine, 0.999);
  std::printf("%s in bf16: smallest cosine %.6f\n", golden.name().c_str(),
              comparison->smallest_cosine);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenRunTest, ::testing::ValuesIn(GoldenCases(GoldensDirectory())),
                         [](const auto& golden) {
                           std::string name = golden.param.name();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// All of a case's sequences in one request.
void ExpectServes(EmbeddingClient& client, const GoldenCase& golden) {
  EmbedCall call;
  call.model = golden.name();
  call.options.outputs = golden.outputs();
  for (size_t i = 0; i < golden.sequences(); ++i) {
    call.sequences.push_back({std::to_string(i), golden.Inputs(i)});
  }
  const auto results = client.Embed(call);
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < results->size(); ++i) {
    ASSERT_TRUE(results->at(i).status.ok()) << results->at(i).status;
    for (const std::string& name : golden.outputs()) {
      EXPECT_LE(golden.Distance(name, results->at(i).outputs.at(name), i), golden.tolerance())
          << name << " of sequence " << i;
    }
  }
}

// The case's file as it is, through the program linserve-client.
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

// All cases as one repository. The packages' own padding is another computation: a case is of it
// or of all others.
TEST_P(GoldenServeTest, GivesThePackagesNumbers) {
  const bool zeros = GetParam().padding == "zeros";
  std::vector<GoldenCase> cases = GoldenCases(GoldensDirectory());
  std::erase_if(cases, [&](const GoldenCase& golden) { return golden.needs_zeros() != zeros; });
  const TempDir repository;
  for (const GoldenCase& golden : cases) {
    fs::create_directory_symlink(fs::canonical(golden.directory()), repository.File(golden.name()));
  }
  Arguments arguments = {
      "--padding", GetParam().padding, "--device", GetParam().device, "--threads",
      "1",         "--follow-links",   "true"};
  // A simulated device takes long for what it would be warmed up with.
  if (GetParam().device != "cpu") arguments.insert(arguments.end(), {"--warmup", "false"});
  RunningServer server(repository.File("."), arguments);
  ASSERT_TRUE(server.ready());
  EmbeddingClient client(server.client_options());
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name());
    ExpectServes(client, golden);
    ExpectEmbedsTheFile(server, golden);
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
