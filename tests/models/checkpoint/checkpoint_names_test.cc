#include "models/checkpoint/checkpoint_names.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/files/safetensors.h"
#include "models/model_fixture.h"
#include "support/golden_case.h"
#include "support/paths.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Glob, MatchesWholeNames) {
  EXPECT_TRUE(MatchesGlob("loss.weight", "loss.*"));
  EXPECT_TRUE(MatchesGlob("a.loss.weight", "*loss*"));
  EXPECT_TRUE(MatchesGlob("loss.weight", "loss.weigh?"));
  EXPECT_TRUE(MatchesGlob("", "**"));
  EXPECT_FALSE(MatchesGlob("model.loss.weight", "loss.*"));
  EXPECT_FALSE(MatchesGlob("loss.weight", "loss"));
  EXPECT_FALSE(MatchesGlob("loss", "loss?"));
}

TEST(Glob, TakesNoLongForAnyPattern) {
  std::string glob;
  for (int i = 0; i < 300; ++i) glob += "*a";
  EXPECT_FALSE(MatchesGlob(std::string(1000, 'a') + "b", glob + "c"));
}

class CheckpointNamesTest : public ModelFixture {
 protected:
  static constexpr const char* kArchitecture = "linformer.Linformer";
  static constexpr const char* kParams =
      R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4, "heads": 2})";

  void SetUp() override {
    item_ = Floats(5, 8);
    expected_ = Compute(*Load(directory_), {item_})[0];
  }

  TensorMap Below(const std::string& prefix, float scale = 1) const {
    TensorMap tensors;
    for (const auto& [name, tensor] : tensors_) {
      std::vector<float> values(tensor.data<float>(), tensor.data<float>() + tensor.elements());
      for (float& value : values) value *= scale;
      tensors[prefix + name] = Tensor::FromFloats(tensor.shape(), values);
    }
    return tensors;
  }

  void WriteCheckpoint(const TensorMap& tensors, json more = json::object(),
                       const std::map<std::string, std::string>& metadata = {}) {
    ASSERT_TRUE(WriteSafetensors(directory_ + "/model.safetensors", tensors, metadata).ok());
    more["architecture"] = kArchitecture;
    more["params"] = json::parse(kParams);
    Write(directory_, "config.json", more.dump());
  }

  void ExpectTheModel() {
    const auto model = LoadModel(directory_, {.threads = 1});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(LargestDifference(Compute(**model, {item_})[0], expected_), 0);
  }

  std::string Error() { return std::string(LoadModel(directory_, {}).status().message()); }

  std::string directory_ = Init(kArchitecture, kParams);
  TensorMap tensors_ = ReadSafetensors(directory_ + "/model.safetensors")->tensors;
  Item item_;
  TensorMap expected_;
};

TEST_F(CheckpointNamesTest, LoseWhatWrappersWriteIntoThemWhereverItStands) {
  for (const std::string inner :
       {"_orig_mod.", "_forward_module.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module."}) {
    TensorMap tensors;
    for (const auto& [name, tensor] : Below("")) {
      std::string wrapped = name;
      wrapped.insert(wrapped.rfind('.') + 1, inner);
      wrapped.insert(wrapped.find("layers."), inner);
      tensors["model." + inner + wrapped] = tensor;
    }
    WriteCheckpoint(tensors);
    ExpectTheModel();
    EXPECT_EQ(InspectModel(directory_)->prefix, "model.");
  }
}

TEST_F(CheckpointNamesTest, MayHaveAPrefixBesideWhatIsNotTheModels) {
  TensorMap tensors = Below("model.");
  tensors["loss.weight"] = Tensor::FromFloats({2}, {1, 2});
  tensors["step"] = Tensor::FromInts({}, {7});
  WriteCheckpoint(tensors);
  ExpectTheModel();
  EXPECT_THAT(InspectModel(directory_)->left_out, ::testing::ElementsAre("loss.weight", "step"));
}

TEST_F(CheckpointNamesTest, MayBeThoseOfAHeadThatTheModelDoesWithout) {
  const std::string sizes = R"("num_tokens": 30, "depth": 1, )";
  const std::vector<std::vector<std::string>> models = {
      {"linear_attention_transformer.LinearAttentionTransformerLM",
       R"("dim": 8, "max_seq_len": 20, "heads": 2, "return_embeddings": )", "out."},
      {"linformer_pytorch.LinformerLM", R"("input_size": 20, "channels": 8, "return_emb": )",
       "to_logits."},
  };
  for (const auto& model : models) {
    const std::string& architecture = model[0];
    const std::string params = "{" + sizes + model[1];
    // A head of one's own stands beside the package's.
    const std::string whole = Init(architecture, params + "false}");
    TensorMap tensors = ReadSafetensors(whole + "/model.safetensors")->tensors;
    ASSERT_TRUE(tensors.contains(model[2] + "weight"));
    tensors[model[2] + "fc.weight"] = Tensor::FromFloats({2}, {1, 2});
    const std::string headless = Init(architecture, params + "true}");
    ASSERT_TRUE(WriteSafetensors(headless + "/model.safetensors", tensors).ok());
    EXPECT_EQ(LoadModel(headless, {.threads = 1}).status(), absl::OkStatus()) << architecture;
    EXPECT_EQ(InspectModel(headless)->left_out.size(), 3) << architecture;
  }
}

TEST_F(CheckpointNamesTest, MayBeIgnored) {
  TensorMap tensors = Below("");
  tensors["loss.weight"] = Tensor::FromFloats({2}, {1, 2});
  WriteCheckpoint(tensors);
  EXPECT_THAT(Error(), HasSubstr("loss.weight [2]"));
  WriteCheckpoint(tensors, {{"ignore", {"loss.*"}}});
  ExpectTheModel();
  WriteCheckpoint(tensors, {{"ignore", {"*"}}});
  EXPECT_THAT(Error(), HasSubstr("missing from the file"));
}

// Which of two models is meant, nobody can know.
TEST_F(CheckpointNamesTest, ThatHoldTheModelTwiceAreChosenFrom) {
  for (const std::string other : {"", "online_model."}) {
    TensorMap tensors = Below("ema_model.");
    for (const auto& [name, tensor] : Below(other, 2)) tensors[name] = tensor;
    WriteCheckpoint(tensors);
    EXPECT_THAT(Error(), HasSubstr("the file holds the model more than once"));
    EXPECT_THAT(Error(), HasSubstr("'" + other + "'"));
    EXPECT_THAT(Error(), HasSubstr("'ema_model.'"));
    WriteCheckpoint(tensors, {{"prefix", "ema_model."}});
    ExpectTheModel();
  }
  TensorMap tensors = Below("");
  for (const auto& [name, tensor] : Below("ema_model.", 2)) tensors[name] = tensor;
  WriteCheckpoint(tensors, {{"ignore", {"ema_model.*"}}});
  ExpectTheModel();
}

TEST_F(CheckpointNamesTest, MayHaveMoreBehindThePrefixThatIsSaid) {
  TensorMap tensors = Below("ema_model.module.");
  for (const auto& [name, tensor] : Below("online_model.module.", 2)) tensors[name] = tensor;
  WriteCheckpoint(tensors, {{"prefix", "ema_model."}});
  ExpectTheModel();
  EXPECT_EQ(InspectModel(directory_)->prefix, "ema_model.module.");
  WriteCheckpoint(tensors, {{"prefix", ""}});
  EXPECT_THAT(Error(), HasSubstr("missing from the file"));
}

TEST_F(CheckpointNamesTest, AreListedWithThePrefixBelowWhichMostFit) {
  TensorMap tensors = Below("net.model.");
  tensors.erase("net.model.net.layers.0.1.fn.w1.bias");
  tensors["net.model.more"] = Tensor::FromFloats({1}, {1});
  tensors["beside"] = Tensor::FromFloats({1}, {1});
  WriteCheckpoint(tensors);
  EXPECT_THAT(Error(), HasSubstr("without the prefix 'net.model.'"));
  EXPECT_THAT(Error(), HasSubstr("missing from the file (1):\n    net.layers.0.1.fn.w1.bias [32]"));
  EXPECT_THAT(Error(), HasSubstr("in the file but not in the model (1):\n    net.model.more [1]"));
}

TEST_F(CheckpointNamesTest, ThatSaveModelLeftOutAreInItsMetadata) {
  TensorMap tensors = Below("module.");
  tensors["module.kept"] = tensors.extract("module.net.layers.0.0.fn.proj_k").mapped();
  WriteCheckpoint(tensors, {{"ignore", {"module.kept"}}},
                  {{"module.net.layers.0.0.fn.proj_k", "module.kept"}, {"format", "pt"}});
  ExpectTheModel();
}

TEST_F(CheckpointNamesTest, AreTextsOfABoundedLength) {
  WriteCheckpoint(Below(""), {{"prefix", std::string(1025, 'p')}});
  EXPECT_THAT(Error(), HasSubstr("expected at most 1024"));
  WriteCheckpoint(Below(""), {{"ignore", std::vector<std::string>(65, "a*")}});
  EXPECT_THAT(Error(), HasSubstr("expected at most 64"));
  WriteCheckpoint(Below(""), {{"ignore", "a*"}});
  EXPECT_THAT(Error(), HasSubstr("\"ignore\" must be a list"));
  WriteCheckpoint(Below(""), {{"prefix", 7}});
  EXPECT_THAT(Error(), HasSubstr("\"prefix\" must be a text"));
}

class GoldenNamesTest : public ModelFixture {};

// Each architecture knows which of its tensors are one: whichever name of them a file has will do.
TEST_F(GoldenNamesTest, NeedNoAliases) {
  for (const GoldenCase& golden : GoldenCases(DataFile("goldens"))) {
    std::ifstream file(golden.directory() + "/config.json");
    json config = json::parse(file);
    config["aliases"] = json::object();
    const TempDir temporary;
    const std::string copy = temporary.File("model");
    std::filesystem::copy(golden.directory(), copy);
    Write(copy, "config.json", config.dump());
    const auto report = InspectModel(copy);
    ASSERT_TRUE(report.ok()) << golden.name() << report.status();
    EXPECT_EQ(report->difference, "") << golden.name();
    EXPECT_EQ(report->nonfinite, "") << golden.name();
  }
}

}  // namespace
}  // namespace linserve
