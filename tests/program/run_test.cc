#include "core/safetensors.h"
#include "program/programs.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class RunTest : public ::testing::Test {
 protected:
  // `run` of a golden model on these tensors.
  Outcome Run(const std::string& golden, const TensorMap& inputs, const Arguments& more = {}) {
    const std::string input = directory_.File("in.safetensors");
    EXPECT_TRUE(WriteSafetensors(input, inputs).ok());
    Arguments arguments = {"run",     "--model",   GoldensDirectory() + "/" + golden,
                           "--input", input,       "--output",
                           output_,   "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunLinserve(arguments);
  }

  void ExpectRefused(const Outcome& outcome, const std::vector<std::string>& messages) {
    EXPECT_EQ(outcome.code, 1);
    for (const std::string& message : messages) EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_FALSE(ReadSafetensors(output_).ok());
  }

  TempDir directory_;
  std::string output_ = directory_.File("out.safetensors");
};

constexpr const char* kLanguageModel = "linformer-lm-basic";

TEST_F(RunTest, AFileWithoutInputsTellsTheNameThatIsMissing) {
  ExpectRefused(Run(kLanguageModel, {{"x", Tensor::FromInts({1, 2}, {1, 2})}}),
                {"no tensor is named input.<argument>", "input. and one of 'x'"});
}

TEST_F(RunTest, AWrongArgumentTellsThoseThatThereAre) {
  ExpectRefused(Run(kLanguageModel, {{"input.tokens", Tensor::FromInts({1, 2}, {1, 2})}}),
                {"input.tokens", "one of 'x'"});
}

TEST_F(RunTest, ComparesItsOutputsWithThoseOfAnotherFile) {
  const std::string golden = GoldensDirectory() + "/" + kLanguageModel;
  const std::string io = golden + "/io.safetensors";
  const Arguments arguments = {"run",       "--model", golden,        "--input", io,
                               "--compare", io,        "--tolerance", "1e-5",    "--dtype"};
  const auto with = [&](const char* dtype) {
    Arguments all = arguments;
    all.emplace_back(dtype);
    return RunLinserve(all);
  };
  const Outcome same = with("f32");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("output.y: largest difference"));
  const Outcome other = with("bf16");
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("larger than the tolerance"));
}

TEST_F(RunTest, NeedsToKnowWhatToDoWithTheOutputs) {
  const Outcome outcome = RunLinserve({"run", "--model", "m", "--input", "i"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("--output FILE"));
}

TEST_F(RunTest, AFaultNamesTheSequence) {
  ExpectRefused(Run(kLanguageModel, {{"input.x", Tensor::FromInts({2, 2}, {1, 2, 3, 999})}}),
                {"sequence 1", "999"});
}

TEST_F(RunTest, LengthsThatDoNotFitAreRefused) {
  const Tensor x = Tensor::FromInts({2, 2}, {1, 2, 3, 4});
  ExpectRefused(
      Run(kLanguageModel, {{"input.x", x}, {"input.lengths", Tensor::FromInts({1}, {1})}}),
      {"input.lengths must hold 2 integers"});
  ExpectRefused(
      Run(kLanguageModel, {{"input.x", x}, {"input.lengths", Tensor::FromInts({2}, {1, 3})}}),
      {"input.lengths: sequence 1 has 3, expected 1 to 2"});
}

TEST_F(RunTest, AnUnknownOutputTellsThoseThatThereAre) {
  ExpectRefused(
      Run(kLanguageModel, {{"input.x", Tensor::FromInts({1, 2}, {1, 2})}}, {"--outputs", "why"}),
      {"output 'why'", "'y'"});
}

TEST_F(RunTest, OnlyTheOutputsAskedForAreWritten) {
  const Outcome outcome = Run(kLanguageModel, {{"input.x", Tensor::FromInts({1, 2}, {1, 2})}},
                              {"--outputs", "embeddings"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto file = ReadSafetensors(output_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors.size(), 1U);
  EXPECT_TRUE(file->tensors.contains("output.embeddings"));
}

TEST_F(RunTest, AMissingInputFileIsNamed) {
  const Outcome outcome = RunLinserve({"run", "--model", GoldensDirectory() + "/" + kLanguageModel,
                                       "--input", directory_.File("none"), "--output", output_});
  ExpectRefused(outcome, {directory_.File("none")});
}

TEST_F(RunTest, InitDoesNotOverwriteAModel) {
  const std::string model = directory_.File("model");
  InitModel(model);
  const std::string weights = ReadAll(model + "/model.safetensors");
  const Outcome again = RunLinserve({"init", "--architecture", "linformer.Linformer", "--output",
                                     model, "--params", R"({"dim": 8, "seq_len": 8, "depth": 1})"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("holds a model already"));
  EXPECT_EQ(ReadAll(model + "/model.safetensors"), weights);
}

TEST_F(RunTest, InitGivesTheSameWeightsForTheSameSeed) {
  InitModel(directory_.File("one"));
  InitModel(directory_.File("two"));
  EXPECT_EQ(ReadAll(directory_.File("one/model.safetensors")),
            ReadAll(directory_.File("two/model.safetensors")));
}

}  // namespace
}  // namespace linserve
