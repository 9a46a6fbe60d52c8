#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/files/safetensors.h"
#include "support/programs.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class RunTest : public ::testing::Test {
 protected:
  // Calls `run` with a golden model on these tensors.
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
  const auto with = [&](const char* tolerance) {
    return RunLinserve(
        {"run", "--model", golden, "--input", io, "--compare", io, "--tolerance", tolerance});
  };
  const Outcome same = with("1e-5");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("output.y: largest difference"));
  const Outcome other = with("1e-12");
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

TEST_F(RunTest, PadsAsTheModelsConfigurationSaysUnlessAFlagSaysOtherwise) {
  const std::string golden = GoldensDirectory() + "/" + kLanguageModel;
  const std::string model = directory_.File("model");
  std::filesystem::copy(golden, model);
  auto config = nlohmann::json::parse(ReadAll(golden + "/config.json"));
  config["serving"] = {{"dtype", "bf16"}};
  std::ofstream(model + "/config.json") << config;
  const auto difference = [&](const std::vector<std::string>& more) {
    Arguments arguments = {"run",
                           "--model",
                           model,
                           "--input",
                           golden + "/io.safetensors",
                           "--compare",
                           golden + "/io.safetensors",
                           "--tolerance",
                           "1e-5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunLinserve(arguments).code;
  };
  EXPECT_EQ(difference({}), 1);
  EXPECT_EQ(difference({"--dtype", "f32"}), 0);
  config["serving"] = {{"padings", "zeros"}};
  std::ofstream(model + "/config.json") << config;
  const Outcome unknown = RunLinserve({"inspect", "--model", model});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("unknown option \"padings\""));
}

TEST_F(RunTest, PadsAsTheWrapperInWhichPythonRanTheModel) {
  const std::string golden = GoldensDirectory() + "/lpt-padder-lm";
  const std::string model = directory_.File("model");
  std::filesystem::copy(golden, model);
  const auto compared = [&](const Arguments& more) {
    Arguments arguments = {"run", "--model", model, "--input", golden + "/io.safetensors"};
    arguments.insert(arguments.end(),
                     {"--compare", golden + "/io.safetensors", "--tolerance", "1e-5"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunLinserve(arguments);
  };
  const Outcome implied = compared({});
  EXPECT_EQ(implied.code, 0) << implied.err;
  EXPECT_THAT(implied.err, HasSubstr("the model's wrapper is linformer_pytorch.Padder"));
  EXPECT_EQ(compared({"--padding", "packed"}).code, 1);
  auto config = nlohmann::json::parse(ReadAll(golden + "/config.json"));
  config["serving"] = {{"padding", "packed"}};
  std::ofstream(model + "/config.json") << config;
  EXPECT_EQ(compared({}).code, 1);
  EXPECT_EQ(compared({"--padding", "auto"}).code, 0);
}

TEST_F(RunTest, TakesTheLatestOfADirectoryOfVersionsAsServeDoes) {
  const std::string golden = GoldensDirectory() + "/" + kLanguageModel;
  const std::string model = directory_.File("model");
  std::filesystem::create_directories(model + "/9");
  std::ofstream(model + "/9/config.json") << R"({"architecture": "of.old"})";
  std::filesystem::copy(golden, model + "/10");
  EXPECT_EQ(RunLinserve({"inspect", "--model", model}).code, 0);
  EXPECT_EQ(RunLinserve({"bench", "--model", model + "/", "--sequences", "2", "--rounds", "1",
                         "--lengths", "fixed:4"})
                .code,
            0);
  // Without lengths they are such as this model, which is a short one, takes.
  const Outcome bench = RunLinserve({"bench", "--model", model, "--rounds", "1", "--json"});
  EXPECT_EQ(bench.code, 0) << bench.err;
  EXPECT_GT(nlohmann::json::parse(bench.out)["peak_memory_bytes"], 1 << 20);
  const Outcome run = RunLinserve({"run", "--model", model, "--input", golden + "/io.safetensors",
                                   "--compare", golden + "/io.safetensors", "--tolerance", "1e-5"});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(RunTest, InspectFailsForWeightsThatAreNotFinite) {
  const std::string golden = GoldensDirectory() + "/" + kLanguageModel;
  const std::string model = directory_.File("model");
  std::filesystem::copy(golden, model);
  TensorMap tensors = ReadSafetensors(model + "/model.safetensors")->tensors;
  Tensor& weight = tensors.begin()->second;
  std::vector<float> values(weight.data<float>(), weight.data<float>() + weight.elements());
  values.front() = std::numeric_limits<float>::quiet_NaN();
  weight = Tensor::FromFloats(weight.shape(), values);
  ASSERT_TRUE(WriteSafetensors(model + "/model.safetensors", tensors).ok());
  for (const bool allowed : {false, true}) {
    auto config = nlohmann::json::parse(ReadAll(golden + "/config.json"));
    config["serving"] = {{"allow_nonfinite", allowed}};
    std::ofstream(model + "/config.json") << config;
    const Outcome verified = RunLinserve({"inspect", "--model", model, "--verify"});
    EXPECT_EQ(verified.code, 1);
    EXPECT_THAT(verified.out, HasSubstr(tensors.begin()->first + " holds NaN at position"));
    EXPECT_EQ(RunLinserve({"inspect", "--model", model}).code, allowed ? 0 : 1);
  }
}

TEST_F(RunTest, HintsThatAnotherAxisMayBePaddedToo) {
  const std::string model = directory_.File("attention");
  ASSERT_EQ(
      RunLinserve({"init", "--architecture", "linear_multihead_attention.LinearMultiheadAttention",
                   "--params", R"({"embed_dim": 4, "num_heads": 2, "seq_len": 8, "proj_k": 3})",
                   "--output", model})
          .code,
      0);
  const Tensor rows = Tensor::FromFloats({2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  TensorMap file = {{"input.query", rows}, {"input.key", rows}, {"input.value", rows}};
  file["input.lengths"] = Tensor::FromInts({1}, {1});
  const std::string input = directory_.File("in.safetensors");
  const auto run = [&] {
    EXPECT_TRUE(WriteSafetensors(input, file).ok());
    return RunLinserve({"run", "--model", model, "--input", input, "--output", output_});
  };
  const Outcome hinted = run();
  EXPECT_EQ(hinted.code, 0) << hinted.err;
  EXPECT_THAT(hinted.err, HasSubstr("give input.lengths.m"));
  file["input.lengths.m"] = file["input.lengths"];
  const Outcome both = run();
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.err, ::testing::Not(HasSubstr("input.lengths.m")));
}

TEST_F(RunTest, InspectTellsInputsAndLimitsInJson) {
  const Outcome outcome =
      RunLinserve({"inspect", "--json", "--model", GoldensDirectory() + "/" + kLanguageModel});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report.at("inputs").at(0).at("kind"), "token");
  EXPECT_EQ(report.at("outputs").at(0).at("name"), "embeddings");
  EXPECT_EQ(report.at("limits").at(0).at("axis"), "n");
}

TEST_F(RunTest, InspectTellsWhatBecomesOfTextsAndRows) {
  const std::string model = directory_.File("bert");
  nlohmann::json config = {{"vocab_size", 6},        {"hidden_size", 8},
                           {"num_hidden_layers", 1}, {"num_attention_heads", 2},
                           {"intermediate_size", 8}, {"max_position_embeddings", 12}};
  const Outcome made = RunLinserve({"init", "--architecture", "transformers.BertModel", "--output",
                                    model, "--params", config.dump()});
  ASSERT_EQ(made.code, 0) << made.err;
  config["model_type"] = "bert";
  WriteAll(model + "/config.json", config.dump());
  const auto inspect = [&] { return RunLinserve({"inspect", "--model", model}); };
  EXPECT_THAT(inspect().out, HasSubstr("texts          none: there is no tokenizer\n"));
  WriteAll(model + "/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  WriteAll(model + "/sentence_bert_config.json", R"({"max_seq_length": 9})");
  config["serving"] = {{"prompts", {{"document", ""}, {"query", "q "}}},
                       {"default_prompt", "query"},
                       {"normalize", true}};
  WriteAll(model + "/config.json", config.dump());
  const Outcome outcome = inspect();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line :
       {"texts          vocab.txt, cut at 9 tokens (max_seq_length in sentence_bert_config.json)\n",
        "pooling        mean, normalized\n", "prompts        document, query (default)\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  const auto report =
      nlohmann::json::parse(RunLinserve({"inspect", "--json", "--model", model}).out);
  EXPECT_EQ(report["tokenizer"], "vocab.txt");
  EXPECT_EQ(report["max_text_tokens"], 9);
  EXPECT_EQ(report["truncation"], "right");
  config["serving"] = {{"nonsense", 1}};
  WriteAll(model + "/config.json", config.dump());
  EXPECT_THAT(inspect().err, HasSubstr("nonsense"));
}

TEST_F(RunTest, InspectVerifiesHowFarOtherTypesAre) {
  const std::string model = GoldensDirectory() + "/" + kLanguageModel;
  for (const char* dtype : {"bf16", "int8"}) {
    if (!CpuComputesIn(dtype)) continue;
    const Outcome outcome = RunLinserve({"inspect", "--json", "--verify", "--model", model});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto error = nlohmann::json::parse(outcome.out).at(std::string(dtype) + "_error");
    EXPECT_GT(error.at("largest"), 0);
    EXPECT_GT(error.at("smallest_cosine"), 0.99);
    EXPECT_EQ(error.at("sequences"), 64);
    const Outcome text = RunLinserve(
        {"inspect", "--verify", "--model", model, "--input", model + "/io.safetensors"});
    EXPECT_THAT(text.out, HasSubstr(std::string(dtype) + " to f32    largest difference"));
    EXPECT_THAT(text.out, HasSubstr("nearest neighbour changed for 0 of"));
  }
}

TEST_F(RunTest, ATypeThatTheCpuHasNoKernelsForIsRefusedWithThoseThatItHas) {
  const std::string model = GoldensDirectory() + "/" + kLanguageModel;
  const std::string io = model + "/io.safetensors";
  const auto with = [&](const char* dtype, const Variables& variables) {
    return RunLinserve({"run", "--model", model, "--input", io, "--compare", io, "--tolerance",
                        "0.2", "--dtype", dtype},
                       variables);
  };
  const Variables old = {{"ONEDNN_MAX_CPU_ISA", "SSE41"}, {"ATEN_CPU_CAPABILITY", "default"}};
  for (const char* dtype : {"bf16", "int8"}) {
    ExpectRefused(with(dtype, old), {dtype, "is not for this CPU, which computes in f32"});
  }
  EXPECT_EQ(with("auto:int8", old).code, 0);
  const Outcome measured = with("auto", {});
  EXPECT_EQ(measured.code, 0) << measured.err;
  EXPECT_THAT(measured.err, HasSubstr("products measured"));
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
