#include <algorithm>

#include "core/files/safetensors.h"
#include "core/tensor/comparison.h"
#include "models/model_loader.h"
#include "program/commands.h"
#include "support/golden_case.h"
#include "support/programs.h"

namespace linserve {
namespace {

// Runs `linserve` with these arguments in this process: so all cases together load LibTorch once.
int RunHere(Arguments arguments) {
  arguments.insert(arguments.begin(), "linserve");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  return RunProgram(static_cast<int>(arguments.size()), words.data());
}

// Returns what `run` makes of the case's inputs.
TensorMap OutputsOf(const GoldenCase& golden, const std::string& dtype) {
  const TempDir temporary;
  const std::string output = temporary.File("out.safetensors");
  const std::string input = golden.directory() + "/io.safetensors";
  const std::string padding = golden.needs_zeros() ? "zeros" : "packed";
  testing::internal::CaptureStderr();
  const int code = RunHere({"run", "--model", golden.directory(), "--input", input, "--output",
                            output, "--padding", padding, "--dtype", dtype, "--threads", "1"});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 0) << said;
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

TEST_P(GoldenRunTest, GivesNearlyTheSameRowsInTheOtherTypesOfTheCpu) {
  const GoldenCase& golden = GetParam();
  if (golden.depth() < 2 || golden.compares_valid_rows_only()) return;
  for (const std::string& dtype : TypesOfCpu()) {
    if (dtype == "f32") continue;
    const TensorMap computed = OutputsOf(golden, dtype);
    const std::string rows =
        golden.tensors().contains("output.y") ? "output.y" : "output.last_hidden_state";
    ASSERT_TRUE(computed.contains(rows));
    const auto comparison = Compare(computed.at(rows), golden.tensors().at(rows));
    ASSERT_TRUE(comparison.ok()) << comparison.status();
    EXPECT_GE(comparison->smallest_cosine, dtype == "int8" ? 0.99 : 0.999) << dtype;
    EXPECT_GE(comparison->mean_cosine, 0.999) << dtype;
    std::printf("%s in %s: cosine smallest %.6f, mean %.6f\n", golden.name().c_str(), dtype.c_str(),
                comparison->smallest_cosine, comparison->mean_cosine);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenRunTest, ::testing::ValuesIn(GoldenCases(GoldensDirectory())),
                         [](const auto& golden) {
                           std::string name = golden.param.name();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace linserve
