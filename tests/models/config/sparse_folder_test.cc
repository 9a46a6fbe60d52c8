// Hugging Face folders of sparse encoders: those of sentence-transformers, and those that the
// option `pooling` makes such.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "models/config/hugging_face_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SparseFolderTest : public HuggingFaceFixture {
 protected:
  SparseFolderTest() {
    Write(folder_, "config.json", "");
    const std::string made = Directory("transformers.BertForMaskedLM", kTinyBert);
    std::filesystem::copy_file(made + "/model.safetensors", folder_ + "/model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    WriteConfig({{"architectures", {"BertForMaskedLM"}}});
  }

  void WriteSparseModules(const json& splade, const std::string& transformer = "MLMTransformer",
                          const std::string& behind = "") {
    json modules = {
        {{"path", ""}, {"type", "sentence_transformers.sparse_encoder.models." + transformer}},
        {{"path", "1_SpladePooling"},
         {"type", "sentence_transformers.sparse_encoder.models.SpladePooling"}}};
    if (!behind.empty()) {
      modules.push_back({{"path", "2"}, {"type", "sentence_transformers.models." + behind}});
      WriteModule("2", json::object());
    }
    Write(folder_, "modules.json", modules.dump());
    WriteModule("1_SpladePooling", splade);
  }

  json Params() const { return ReadModelDirectory(folder_)->network.params; }
  std::string Architecture() const { return ReadModelDirectory(folder_)->network.architecture; }
};

TEST_F(SparseFolderTest, OfSentenceTransformersIsASparseEncoder) {
  WriteSparseModules({{"pooling_strategy", "sum"},
                      {"activation_function", "log1p_relu"},
                      {"word_embedding_dimension", 20}});
  EXPECT_EQ(Architecture(), "transformers.BertForMaskedLM");
  EXPECT_EQ(Params()["pooling_strategy"], "sum");
  EXPECT_EQ(Params()["activation_function"], "log1p_relu");
  const auto model = Load(folder_);
  EXPECT_EQ(model->info().signature.outputs[0].name, "sparse_embedding");
  EXPECT_EQ(Compute(*model, {item_})[0].begin()->second.shape(), Shape{20});
}

TEST_F(SparseFolderTest, OfANewerVersionSaysItsTask) {
  WriteSparseModules({{"embedding_dimension", nullptr}}, "Transformer");
  Write(folder_, "sentence_bert_config.json", R"({"transformer_task": "fill-mask"})");
  EXPECT_EQ(Architecture(), "transformers.BertForMaskedLM");
  EXPECT_EQ(Params()["pooling_strategy"], "max");
  EXPECT_EQ(Params()["activation_function"], "relu");
  Write(folder_, "sentence_bert_config.json", R"({"transformer_task": "feature-extraction"})");
  EXPECT_THAT(Error(), HasSubstr("transformer_task is \"feature-extraction\", expected "
                                 "\"fill-mask\""));
}

TEST_F(SparseFolderTest, WithoutModulesIsAnEncoderUnlessAsked) {
  EXPECT_EQ(Architecture(), "transformers.BertModel");
  EXPECT_EQ(Error(), "");
  WriteConfig({{"architectures", {"BertForMaskedLM"}}, {"serving", {{"pooling", "splade"}}}});
  EXPECT_EQ(Architecture(), "transformers.BertForMaskedLM");
  EXPECT_EQ(Params()["pooling_strategy"], "max");
  EXPECT_EQ(Params()["activation_function"], "relu");
  EXPECT_EQ(Serving()["pooling"], "mean");
  EXPECT_EQ(Load(folder_)->info().signature.outputs[0].name, "sparse_embedding");
}

TEST_F(SparseFolderTest, HasTheDecoderUnderEitherNameOrBoth) {
  WriteSparseModules(json::object());
  const TensorMap expected = Rows(folder_);
  const auto file = ReadSafetensors(folder_ + "/model.safetensors");
  ASSERT_TRUE(file.ok());
  const Tensor words = file->tensors.at("bert.embeddings.word_embeddings.weight");
  const std::string decoder = "cls.predictions.decoder.";
  RenameTensors(
      [&](const std::string& name) {
        if (name == decoder + "weight")
          return std::string("bert.embeddings.word_embeddings.weight");
        return name == decoder + "bias" ? std::string("cls.predictions.bias") : name;
      },
      {{decoder + "weight", words}, {"cls.seq_relationship.weight", words}});
  EXPECT_EQ(LargestDifference(Rows(folder_), expected), 0);
  RenameTensors([&](const std::string& name) {
    if (name == decoder + "weight") return std::string();
    return name == "cls.predictions.transform.LayerNorm.weight"
               ? std::string("cls.predictions.transform.LayerNorm.gamma")
               : name;
  });
  EXPECT_EQ(LargestDifference(Rows(folder_), expected), 0);
}

TEST_F(SparseFolderTest, WithoutItsHeadIsRefusedByTheTensorsThatAreMissing) {
  WriteSparseModules(json::object());
  RenameTensors([](const std::string& name) {
    return name.starts_with("cls.predictions.transform.") ? "" : name;
  });
  EXPECT_THAT(Error(), AllOf(HasSubstr("missing from the file (4):"),
                             HasSubstr("cls.predictions.transform.dense.weight [8, 8]")));
}

TEST_F(SparseFolderTest, WithADecoderOfItsOwnNeedsItsTensors) {
  WriteConfig({{"tie_word_embeddings", false}});
  WriteSparseModules(json::object());
  RenameTensors([](const std::string& name) {
    return name.starts_with("cls.predictions.decoder.") ? "" : name;
  });
  EXPECT_THAT(Error(), HasSubstr("cls.predictions.decoder.weight [20, 8]"));
}

TEST_F(SparseFolderTest, WithWhatIsNotComputedIsRefusedByName) {
  WriteSparseModules({{"pooling_strategy", "mean"}});
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("1_SpladePooling/config.json"),
                    HasSubstr("\"pooling_strategy\" is \"mean\", expected one of max, sum")));
  WriteSparseModules({{"activation_function", "gelu"}});
  EXPECT_THAT(Error(), HasSubstr("expected one of relu, log1p_relu"));
  WriteSparseModules({{"top_k", 3}});
  EXPECT_THAT(Error(), HasSubstr("\"top_k\""));
  WriteSparseModules(json::object(), "MLMTransformer", "Normalize");
  EXPECT_THAT(Error(), HasSubstr("'Normalize' is not computed behind SpladePooling"));
  for (const char* kind : {"SparseStaticEmbedding", "Router", "SparseAutoEncoder", "IDF"}) {
    Write(folder_, "modules.json",
          json{{{"path", ""},
                {"type", std::string("sentence_transformers.sparse_encoder.models.") + kind}}}
              .dump());
    EXPECT_THAT(Error(), AllOf(HasSubstr(std::string("'") + kind + "' is not computed"),
                               HasSubstr("MLMTransformer and SpladePooling")));
  }
  WriteModules({"MLMTransformer", "Pooling"});
  WriteModule("1_Pooling", {{"pooling_mode_cls_token", true}});
  EXPECT_THAT(Error(), HasSubstr("logits are pooled by SpladePooling alone"));
}

TEST_F(SparseFolderTest, OfAnotherModelIsRefusedWithThoseThatAreTaken) {
  WriteSparseModules(json::object());
  WriteConfig({{"model_type", "nystromformer"}});
  EXPECT_THAT(Error(), AllOf(HasSubstr("not made of transformers.NystromformerModel"),
                             HasSubstr("transformers.DistilBertForMaskedLM")));
}

TEST_F(SparseFolderTest, OptionContradictsModulesBehindThePooling) {
  WriteConfig({{"serving", {{"pooling", "splade"}}}});
  WriteModules({"Transformer", "Pooling", "Normalize"});
  WriteModule("1_Pooling", {{"pooling_mode_mean_tokens", true}});
  EXPECT_THAT(Error(), HasSubstr("\"pooling\" is \"splade\", but modules.json has modules behind"));
}

}  // namespace
}  // namespace linserve
