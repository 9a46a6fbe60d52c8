#include "models/checkpoint/checkpoint_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "models/model_fixture.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class ShardsTest : public ModelFixture {
 protected:
  void SetUp() override {
    whole_ = ReadSafetensors(WeightsPath(directory_))->tensors;
    fs::remove(WeightsPath(directory_));
    size_t i = 0;
    for (const auto& [name, tensor] : whole_) {
      const std::string file = "model-0000" + std::to_string(1 + i++ % 3) + "-of-00003.safetensors";
      shards_[file][name] = tensor;
      index_["weight_map"][name] = file;
    }
    for (const auto& [file, tensors] : shards_) WriteShard(file, tensors);
    WriteIndex();
  }

  void WriteShard(const std::string& file, const TensorMap& tensors) {
    ASSERT_TRUE(WriteSafetensors(directory_ + "/" + file, tensors).ok());
  }
  void WriteIndex() { Write(directory_, "model.safetensors.index.json", index_.dump()); }

  std::string Error() { return std::string(LoadModel(directory_, {}).status().message()); }

  std::string directory_ = Init("linformer.LinformerLM", R"({"num_tokens": 30, "dim": 16,
      "seq_len": 8, "depth": 1, "k": 4, "heads": 2})");
  TensorMap whole_;
  std::map<std::string, TensorMap> shards_;
  json index_;
};

TEST_F(ShardsTest, AreOneCheckpoint) {
  const auto read = ReadCheckpoint(directory_);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->tensors.size(), whole_.size());
  for (const auto& [name, tensor] : whole_) {
    EXPECT_EQ(LargestDifference(read->tensors.at(name), tensor), 0) << name;
  }
  EXPECT_EQ(Error(), "");
  const auto weights = WeightsOf(directory_, {});
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->dtype, DType::kF32);
  int64_t sum = 0;
  for (const auto& [file, tensors] : shards_) {
    sum += static_cast<int64_t>(fs::file_size(directory_ + "/" + file));
  }
  EXPECT_EQ(CheckpointBytes(directory_), sum);
}

TEST_F(ShardsTest, AreRefusedWhereTheyAreNotWhatTheIndexSays) {
  const auto [file, tensors] = *shards_.begin();
  const std::string tensor = tensors.begin()->first;
  fs::remove(directory_ + "/" + file);
  EXPECT_THAT(Error(), HasSubstr(file));
  WriteShard(file, {});
  EXPECT_THAT(Error(), HasSubstr("'" + tensor + "' is not in '" + file + "'"));
  TensorMap twice = tensors;
  twice.insert(*shards_.rbegin()->second.begin());
  WriteShard(file, twice);
  EXPECT_THAT(Error(), HasSubstr("and another file, too"));
}

TEST_F(ShardsTest, LieBesideTheIndexAndAreNotWithoutNumber) {
  const std::string tensor = whole_.begin()->first;
  for (const json& file : {json("../model.safetensors"), json("/etc/passwd"), json(""), json(7),
                           json(std::string(300, 'a') + ".safetensors"), json("weights.bin")}) {
    index_["weight_map"][tensor] = file;
    WriteIndex();
    EXPECT_THAT(Error(), HasSubstr("expected the name of a .safetensors file beside the index"));
    EXPECT_EQ(CheckpointBytes(directory_), 0);
  }
  index_["weight_map"].erase(tensor);
  for (int i = 0; i < 1025; ++i) {
    index_["weight_map"][std::to_string(i)] = std::to_string(i) + ".safetensors";
  }
  WriteIndex();
  EXPECT_THAT(Error(), HasSubstr("it names more than 1024 files"));
  index_ = json::array();
  WriteIndex();
  EXPECT_THAT(Error(), HasSubstr("\"weight_map\" must be an object"));
}

class OtherFormatsTest : public ModelFixture {
 protected:
  // What is said where this lies in the place of the weights.
  std::string ErrorWith(const std::string& file, const std::string& content) {
    const std::string directory =
        Init("linformer.Linformer", R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4, "heads": 2})");
    fs::remove(WeightsPath(directory));
    Write(directory, file, content);
    const auto model = LoadModel(directory, {});
    EXPECT_FALSE(model.ok());
    EXPECT_FALSE(InspectModel(directory).ok());
    return std::string(model.status().message());
  }
};

TEST_F(OtherFormatsTest, AreNamedWithTheWayToConvertThem) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n";
  EXPECT_THAT(ErrorWith("model.safetensors", pointer), HasSubstr("git lfs pull"));
  const std::string zip = std::string("PK\x03\x04") + std::string(100, 'x');
  for (const char* file : {"model.safetensors", "pytorch_model.bin", "best.pt", "last.ckpt"}) {
    const std::string error = ErrorWith(file, zip);
    EXPECT_THAT(error, HasSubstr("a pickle in a zip"));
    EXPECT_THAT(error, HasSubstr("torch.load(\"" + std::string(file) + "\""));
    EXPECT_THAT(error, HasSubstr("weights_only=True"));
  }
  EXPECT_THAT(ErrorWith("old.pth", "\x80\x02}q"), HasSubstr("a pickle, as torch.save() writes it"));
  EXPECT_THAT(ErrorWith("model.gguf", "GGUF\x03"), HasSubstr("llama.cpp"));
  EXPECT_THAT(ErrorWith("__0_0.distcp", "PK\x03\x04"), HasSubstr("dcp_to_torch"));
  EXPECT_THAT(ErrorWith("best.pt", pointer), HasSubstr("git lfs pull"));
  EXPECT_THAT(ErrorWith("weights.safetensors", "{}"), HasSubstr("rename it"));
  EXPECT_THAT(ErrorWith("notes.txt", "nothing"), HasSubstr("save_model() writes it"));
  // linserve_export writes it beside the weights.
  EXPECT_THAT(ErrorWith("example.safetensors", "{}"), HasSubstr("save_model() writes it"));
}

}  // namespace
}  // namespace linserve
