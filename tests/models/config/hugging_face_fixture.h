#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "models/model_directory.h"
#include "models/model_fixture.h"

namespace linserve {

inline constexpr const char* kTinyBert =
    R"({"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 12})";

class HuggingFaceFixture : public ModelFixture {
 protected:
  HuggingFaceFixture() { WriteConfig(nlohmann::json::object()); }

  // Writes a config.json as the hub has them, with these members besides.
  void WriteConfig(const nlohmann::json& more) {
    nlohmann::json config = nlohmann::json::parse(kTinyBert);
    config.update({{"model_type", "bert"},
                   {"architectures", {"BertModel"}},
                   {"transformers_version", "4.8.2"},
                   {"gradient_checkpointing", false}});
    config.update(more);
    Write(folder_, "config.json", config.dump());
  }

  void WriteModule(const std::string& name, const nlohmann::json& config) {
    std::filesystem::create_directories(folder_ + "/" + name);
    Write(folder_ + "/" + name, "config.json", config.dump());
  }

  // Writes modules.json with modules of these types, whose paths are 1_Pooling and 2_Dense.
  void WriteModules(const std::vector<std::string>& types) {
    nlohmann::json modules = nlohmann::json::array();
    for (const std::string& type : types) {
      const std::string path = type == "Pooling" ? "1_Pooling" : type == "Dense" ? "2_Dense" : "";
      modules.push_back({{"path", path}, {"type", "sentence_transformers.models." + type}});
    }
    Write(folder_, "modules.json", modules.dump());
  }

  nlohmann::json Serving() const { return ReadModelDirectory(folder_)->serving; }
  std::string Error() const { return std::string(LoadModel(folder_, {}).status().message()); }

  // Rewrites the checkpoint with other names. A name that becomes empty is left out.
  template <typename Rename>
  void RenameTensors(const Rename& rename, const TensorMap& more = {}) {
    const std::string path = folder_ + "/model.safetensors";
    TensorMap tensors = more;
    const auto file = ReadSafetensors(path);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const auto& [name, tensor] : file->tensors) {
      if (const std::string renamed = rename(name); !renamed.empty()) tensors[renamed] = tensor;
    }
    ASSERT_TRUE(WriteSafetensors(path, tensors).ok());
  }

  TensorMap Rows(const std::string& directory) { return Compute(*Load(directory), {item_})[0]; }

  const std::string folder_ = Directory("transformers.BertModel", kTinyBert);
  const Item item_ = Tokens(7, 20);
};

}  // namespace linserve
