#include <filesystem>
#include <fstream>
#include <functional>
#include <ostream>

#include "core/files/safetensors.h"
#include "support/programs.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;

// Holds a fault of a model directory, and what `serve` must say of it.
struct BrokenModel {
  std::string name;
  std::function<void(const std::string& directory)> harm;
  std::vector<std::string> messages;
};

void PrintTo(const BrokenModel& model, std::ostream* out) { *out << model.name; }

void Replace(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = ReadAll(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << path;
  WriteAll(path, text.replace(at, from.size(), to));
}

void ReplaceInConfig(const std::string& directory, const std::string& from, const std::string& to) {
  Replace(directory + "/config.json", from, to);
}

// Takes a copy of the tensors, which are views of the file that is about to be written.
TensorMap TensorsOf(const std::string& directory) {
  auto file = ReadSafetensors(directory + "/model.safetensors");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? file->tensors : TensorMap();
}

void WriteTensors(const std::string& directory, const TensorMap& tensors) {
  const absl::Status status = WriteSafetensors(directory + "/model.safetensors", tensors);
  ASSERT_TRUE(status.ok()) << status;
}

void RenameTwoTensors(const std::string& directory) {
  TensorMap tensors = TensorsOf(directory);
  for (const char* name : {"token_emb.weight", "to_logits.weight"}) {
    auto node = tensors.extract(name);
    ASSERT_FALSE(node.empty()) << name;
    node.key() = std::string("other.") + name;
    tensors.insert(std::move(node));
  }
  WriteTensors(directory, tensors);
}

std::vector<BrokenModel> BrokenModels() {
  return {
      {"NoWeights",
       [](const auto& directory) { fs::remove(directory + "/model.safetensors"); },
       {"model.safetensors"}},
      {"NoJson",
       [](const auto& directory) { WriteAll(directory + "/config.json", "{\"archi"); },
       {"lm/config.json: ", "parse error"}},
      {"ConfigTooLong",
       [](const auto& directory) {
         WriteAll(directory + "/config.json", "{}" + std::string(1 << 20, ' '));
       },
       {"lm/config.json' is longer than 1048576 bytes"}},
      {"ConfigTooDeep",
       [](const auto& directory) {
         ReplaceInConfig(directory, "{", "{\"call\": " + std::string(100'000, '['));
       },
       {"lm/config.json: it is nested more than 64 deep"}},
      {"WeightsLargerThanTheMemory",
       [](const auto& directory) {
         fs::resize_file(directory + "/model.safetensors", uintmax_t{1} << 42);
       },
       {"needs 4.0 TiB for its weights"}},
      {"TokenizerTooLarge",
       [](const auto& directory) {
         WriteAll(directory + "/tokenizer.model", "x");
         fs::resize_file(directory + "/tokenizer.model", (32 << 20) + 1);
       },
       {"lm/tokenizer.model is no SentencePiece model", "is longer than 33554432 bytes"}},
      {"NoObject",
       [](const auto& directory) { WriteAll(directory + "/config.json", "[]"); },
       {"lm/config.json: expected a JSON object"}},
      {"NoArchitecture",
       [](const auto& directory) { WriteAll(directory + "/config.json", "{\"params\": {}}"); },
       {"lm/config.json: \"architecture\" is missing"}},
      {"UnknownKey",
       [](const auto& directory) { ReplaceInConfig(directory, "\"params\"", "\"parms\""); },
       {"lm/config.json: unknown key 'parms'", "params"}},
      {"UnknownArchitecture",
       [](const auto& directory) { ReplaceInConfig(directory, "LinformerLM", "LinformerML"); },
       {"linformer.LinformerML", "linformer.LinformerLM"}},
      {"UnknownParameter",
       [](const auto& directory) {
         ReplaceInConfig(directory, "\"depth\"", "\"deepth\": 3, \"depth\"");
       },
       {"deepth"}},
      {"ImpossibleParameter",
       [](const auto& directory) { ReplaceInConfig(directory, "\"depth\": ", "\"depth\": -"); },
       {"depth"}},
      {"UnknownServingOption",
       [](const auto& directory) {
         ReplaceInConfig(directory, "{", "{\"serving\": {\"poolin\": \"mean\"},");
       },
       {"lm/config.json, \"serving\"", "poolin", "pooling"}},
      {"TruncatedWeights",
       [](const auto& directory) {
         const std::string path = directory + "/model.safetensors";
         fs::resize_file(path, fs::file_size(path) - 1000);
       },
       {"lm/model.safetensors"}},
      {"EmptyWeights",
       [](const auto& directory) { WriteAll(directory + "/model.safetensors", ""); },
       {"lm/model.safetensors"}},
      {"WrongTensors",
       RenameTwoTensors,
       {"missing from the file (2)", "\n    token_emb.weight [", "\n    to_logits.weight [",
        "in the file but not in the model (2)", "other.token_emb.weight [",
        "other.to_logits.weight ["}},
      {"WrongShape",
       [](const auto& directory) {
         TensorMap tensors = TensorsOf(directory);
         tensors["to_logits.bias"] = Tensor::FromFloats({2}, {1, 2});
         WriteTensors(directory, tensors);
       },
       {"of the wrong shape or type (1)", "to_logits.bias is [2], expected [60]"}},
  };
}

class BrokenModelTest : public ::testing::TestWithParam<BrokenModel> {
 protected:
  static Outcome Serve(const std::string& repository,
                       const std::string& option = "--exit-on-error=true") {
    return RunLinserve({"serve", "--model-repository", repository, "--grpc-address", "127.0.0.1:0",
                        "--http-address", "127.0.0.1:0", "--log-level", "error", option});
  }

  TempDir directory_;
};

TEST_P(BrokenModelTest, StopsTheServerWithAMessage) {
  const std::string model = directory_.File("models/lm");
  CopyGolden("linformer-lm-basic", model);
  for (const auto& entry : fs::directory_iterator(model)) {
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
  }
  GetParam().harm(model);
  const Outcome outcome = Serve(directory_.File("models"));
  EXPECT_EQ(outcome.code, 1);
  for (const std::string& message : GetParam().messages) {
    EXPECT_THAT(outcome.err, ::testing::HasSubstr(message));
  }
}

INSTANTIATE_TEST_SUITE_P(All, BrokenModelTest, ::testing::ValuesIn(BrokenModels()),
                         [](const auto& model) { return model.param.name; });

using BrokenRepositoryTest = BrokenModelTest;

TEST_F(BrokenRepositoryTest, AMissingDirectoryIsNamedWithTheOptionThatGivesAnother) {
  const Outcome outcome = Serve(directory_.File("nowhere"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("nowhere is not a directory"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("--model-repository"));
}

TEST_F(BrokenRepositoryTest, OtherModelsAreServedWhereErrorsDoNotEndTheServer) {
  CopyGolden("linformer-lm-basic", directory_.File("models/good"));
  fs::create_directories(directory_.File("models/bad"));
  std::ofstream(directory_.File("models/bad/config.json")) << "{}";
  RunningServer server(directory_.File("models"), {"--exit-on-error=false"});
  EXPECT_TRUE(server.WaitFor(R"(linserve_model_state{model="good",state="READY",version="1"})", 1));
  EXPECT_THAT(server.Get("/"), ::testing::HasSubstr("bad/config.json"));
  EXPECT_EQ(server.Stop(), 0) << server.log();
  EXPECT_THAT(server.log(), ::testing::HasSubstr("bad/config.json"));
}

TEST_F(BrokenRepositoryTest, ThereMustBeAnotherModelForThat) {
  fs::create_directories(directory_.File("models/bad"));
  std::ofstream(directory_.File("models/bad/config.json")) << "{}";
  const Outcome outcome = Serve(directory_.File("models"), "--exit-on-error=false");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("bad/config.json"));
}

TEST_F(BrokenRepositoryTest, ADirectoryWithoutModelsTellsWhatWasExpected) {
  fs::create_directories(directory_.File("models/empty"));
  const Outcome outcome = Serve(directory_.File("models"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("NAME/config.json"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("linserve init"));
}

}  // namespace
}  // namespace linserve
