// What late-interaction folders say of their rows and texts, as MultiVectorEncoder reads them.
#include "models/config/late_interaction_folder.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "attention/rows/aten.h"
#include "core/files/safetensors.h"
#include "models/config/hugging_face_fixture.h"
#include "models/placement/tensor_bridge.h"
#include "models/simulated.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kSentencesFile = "config_sentence_transformers.json";

class LateInteractionFolderTest : public HuggingFaceFixture {
 protected:
  LateInteractionFolderTest() {
    WriteNative({{"Transformer", ""},
                 {"Dense", "1_Dense"},
                 {"MultiVectorMask", "2_Mask"},
                 {"Normalize", "3_Normalize"}});
    WriteModule("1_Dense", {{"in_features", 8},
                            {"out_features", 5},
                            {"bias", false},
                            {"activation_function", "torch.nn.modules.linear.Identity"},
                            {"module_input_name", "token_embeddings"},
                            {"module_output_name", "token_embeddings"}});
    EXPECT_TRUE(
        WriteSafetensors(folder_ + "/1_Dense/model.safetensors", {{"linear.weight", weight_}})
            .ok());
    WriteModule("2_Mask", {{"skiplist_words", {"."}},
                           {"skiplist_tasks", {"document"}},
                           {"keep_only_token_ids", nullptr}});
    WriteModule("3_Normalize", {{"module_input_name", "token_embeddings"}});
  }

  void WriteNative(const std::vector<std::pair<std::string, std::string>>& modules) {
    WriteTypes(modules, "sentence_transformers.base.modules.");
    Write(folder_, kSentencesFile, R"({"model_type": "MultiVectorEncoder"})");
  }

  void WriteTypes(const std::vector<std::pair<std::string, std::string>>& modules,
                  const std::string& before) {
    json list = json::array();
    for (const auto& [type, path] : modules)
      list.push_back({{"path", path}, {"type", before + type}});
    Write(folder_, "modules.json", list.dump());
  }

  // Makes it a folder of PyLate, which names its class of Dense alone.
  void WritePylate(const json& sentences) {
    Write(folder_, "modules.json",
          R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
              {"path": "1_Dense", "type": "pylate.models.Dense.Dense"}])");
    WriteModule("1_Dense", {{"in_features", 8},
                            {"out_features", 5},
                            {"bias", false},
                            {"activation_function", "torch.nn.modules.linear.Identity"}});
    Write(folder_, kSentencesFile, sentences.dump());
  }

  LateInteraction Texts() const { return *ReadModelDirectory(folder_)->late_interaction; }

  // Expects the rows that are made of the encoder's by the projection.
  void ExpectProjected() {
    Item item = item_;
    item.options.outputs = {"token_embeddings", "last_hidden_state"};
    const TensorMap results = Compute(*Load(folder_), {item})[0];
    const at::Tensor made = at::linear(ToAten(results.at("last_hidden_state")), ToAten(weight_));
    const at::Tensor expected = made / made.norm(2, {-1}, /*keepdim=*/true);
    EXPECT_LT((ToAten(results.at("token_embeddings")) - expected).abs().max().item<float>(), 1e-6);
  }

  const Tensor weight_ = RandomFloats({5, 8});
};

TEST_F(LateInteractionFolderTest, GivesEachRowProjectedAndNormalized) {
  EXPECT_EQ(Serving()["pooling"], "none");
  EXPECT_FALSE(Serving().contains("normalize"));
  ExpectProjected();
  WritePylate({{"model_type", "ColBERT"}});
  ExpectProjected();
}

TEST_F(LateInteractionFolderTest, OfStanfordsCodeHasItsProjectionAmongTheTensors) {
  for (const char* file : {"modules.json", kSentencesFile}) {
    std::filesystem::remove(folder_ + "/" + file);
  }
  WriteConfig({{"architectures", {"HF_ColBERT"}}});
  Write(folder_, "artifact.metadata",
        R"({"dim": 5, "query_token_id": "[Q]", "doc_maxlen": 7, "attend_to_mask_tokens": true})");
  RenameTensors([](const std::string& name) { return "bert." + name; },
                {{"linear.weight", weight_}});
  ExpectProjected();
  const LateInteraction texts = Texts();
  EXPECT_THAT(texts.prefixes, ElementsAre("[Q] ", "[unused1] "));
  EXPECT_EQ(Serving()["prompts"], (json{{"query", "[Q] "}, {"document", "[unused1] "}}));
  EXPECT_EQ(texts.document_tokens, 7);
  EXPECT_EQ(texts.query_tokens, 32);
  EXPECT_TRUE(texts.expansion->attended);
  EXPECT_EQ(texts.skipped.size(), 32);
  Write(folder_, "artifact.metadata", R"({"dim": 5, "mask_punctuation": false})");
  EXPECT_THAT(Texts().skipped, IsEmpty());
  Write(folder_, "artifact.metadata", "{}");
  EXPECT_THAT(Error(), HasSubstr("linear.weight is [5, 8], expected [128, 8]"));
}

TEST_F(LateInteractionFolderTest, LeavesOutTheRowsThatItsMaskSays) {
  const auto model = Load(folder_);
  Item some = item_;
  some.inputs["scoring_mask"] = MaskOf(7, 2, 5);
  const std::vector<TensorMap> results = Compute(*model, {some, some});
  EXPECT_EQ(results[1].at("token_embeddings").shape(), (Shape{3, 5}));
  const Tensor all = Compute(*model, {item_})[0].at("token_embeddings");
  EXPECT_LT(LargestDifference({{"y", results[1].at("token_embeddings")}}, {{"y", all.Rows(2, 5)}}),
            1e-6);
  some.inputs["scoring_mask"] = MaskOf(7, 0, 0);
  EXPECT_EQ(Compute(*model, {some})[0].at("token_embeddings").shape(), (Shape{0, 5}));
  some.inputs["scoring_mask"] = MaskOf(7, 2, 5);
  some.options.pooling = Pooling::kMean;
  const at::Tensor mean = ToAten(all.Rows(2, 5)).mean(0);
  const TensorMap pooled = Compute(*model, {some})[0];
  EXPECT_LT((ToAten(pooled.at("token_embeddings")) - mean).abs().max().item<float>(), 1e-6);
}

TEST_F(LateInteractionFolderTest, GivesThoseRowsOnADevice) {
  Simulated();
  const auto model = Load(folder_, {.device = "simulated:0", .dtype = "f32"});
  ASSERT_TRUE(model->Prepare().ok());
  for (const bool hidden : {false, true}) {
    std::vector<Item> items;
    for (const int64_t length : {5, 1, 9}) {
      items.push_back(Tokens(length, 20));
      items.back().inputs["scoring_mask"] = MaskOf(length, 0, (length + 1) / 2);
      if (hidden) items.back().inputs["attention_mask"] = MaskOf(length, 0, (length + 2) / 2);
    }
    const std::vector<TensorMap> expected = Compute(*Load(folder_), items);
    const std::vector<TensorMap> computed = Compute(*model, items, model->info().padding);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_LT(LargestDifference(computed[i], expected[i]), 1e-5) << "sequence " << i;
    }
  }
}

TEST_F(LateInteractionFolderTest, ReadsTextsAsItsTransformerAndItsMaskSay) {
  EXPECT_EQ(Serving()["prompts"], (json{{"query", ""}, {"document", ""}}));
  LateInteraction texts = Texts();
  EXPECT_FALSE(texts.expansion);
  EXPECT_EQ(texts.query_tokens, 0);
  EXPECT_THAT(texts.skipped, ElementsAre("."));
  EXPECT_FALSE(texts.skips_in_queries);
  Write(folder_, "sentence_bert_config.json",
        R"({"query_length": 9, "document_length": 11, "query_expansion":
            {"strategy": "min", "attend": true, "token": "[SEP]", "length": 6}})");
  WriteModule("2_Mask", {{"skiplist_words", {"."}}, {"skiplist_tasks", "query"}});
  texts = Texts();
  EXPECT_EQ(texts.query_tokens, 9);
  EXPECT_EQ(texts.document_tokens, 11);
  EXPECT_TRUE(texts.expansion->at_least);
  EXPECT_TRUE(texts.expansion->attended);
  EXPECT_EQ(texts.expansion->token, "[SEP]");
  EXPECT_EQ(texts.expansion->length, 6);
  EXPECT_TRUE(texts.skips_in_queries);
  EXPECT_FALSE(texts.skips_in_documents);
}

TEST_F(LateInteractionFolderTest, OfPylateReadsTextsAsItsFlatMembersSay) {
  WritePylate({{"query_prefix", "[Q] "},
               {"document_prefix", "[D] "},
               {"query_length", 9},
               {"document_length", 11},
               {"prompts", {{"query", "find: "}, {"document", "[D] read: "}}}});
  LateInteraction texts = Texts();
  EXPECT_THAT(texts.prefixes, ElementsAre("[Q] ", "[D] "));
  EXPECT_EQ(Serving()["prompts"], (json{{"query", "[Q] find: "}, {"document", "[D] read: "}}));
  EXPECT_EQ(texts.query_tokens, 9);
  EXPECT_EQ(texts.expansion->length, 9);
  EXPECT_FALSE(texts.expansion->attended);
  EXPECT_EQ(texts.document_tokens, 11);
  EXPECT_EQ(texts.skipped.size(), 32);
  WritePylate({{"model_type", "ColBERT"},
               {"query_length", 9},
               {"do_query_expansion", false},
               {"skiplist_words", {"a"}}});
  texts = Texts();
  EXPECT_FALSE(texts.expansion);
  EXPECT_EQ(texts.query_tokens, 9);
  EXPECT_THAT(texts.skipped, ElementsAre("a"));
  WritePylate({{"model_type", "ColBERT"}, {"attend_to_expansion_tokens", true}});
  EXPECT_TRUE(Texts().expansion->attended);
  EXPECT_EQ(Texts().expansion->length, 32);
}

TEST_F(LateInteractionFolderTest, WithWhatIsNotComputedIsRefusedByName) {
  WriteModule("2_Mask", {{"keep_only_token_ids", {7}}});
  EXPECT_THAT(Error(), HasSubstr("2_Mask/config.json: parameter \"keep_only_token_ids\" is [7]"));
  WriteModule("2_Mask", {{"skiplist_words", "."}});
  EXPECT_THAT(Error(), HasSubstr("2_Mask/config.json: 'skiplist_words' is no list of texts"));
  WriteModule("2_Mask", json::object());
  const auto with = [this](const std::string& type) {
    WriteNative({{"Transformer", ""}, {"Dense", "1_Dense"}, {type, "2_Mask"}});
    return Error();
  };
  EXPECT_EQ(with("MultiVectorMask"), "");
  EXPECT_THAT(with("HierarchicalTokenPooling"),
              HasSubstr("type 'HierarchicalTokenPooling' is not computed there, in a late-inter"));
  EXPECT_THAT(with("Router"), HasSubstr("type 'Router' is not computed there"));
  EXPECT_THAT(with("Normalize"), HasSubstr("\"module_input_name\" is missing, expected"));
  WriteModule("3_Normalize", {{"module_input_name", "sentence_embedding"}});
  WriteNative({{"Transformer", ""}, {"Normalize", "3_Normalize"}});
  EXPECT_THAT(Error(), HasSubstr("expected one of token_embeddings"));
  std::filesystem::remove(folder_ + "/modules.json");
  EXPECT_THAT(Error(), HasSubstr("modules.json is not there"));
}

TEST_F(LateInteractionFolderTest, WithQueriesThatCannotBeFilledUpIsRefused) {
  const auto with = [this](const json& expansion) {
    Write(folder_, "sentence_bert_config.json",
          json{{"query_expansion", expansion}, {"query_length", 5}}.dump());
    return Error();
  };
  EXPECT_EQ(with({{"strategy", "fixed"}, {"length", 5}}), "");
  EXPECT_THAT(
      with({{"strategy", "fixed"}, {"length", 6}}),
      HasSubstr("\"query_length\" is 5, expected at least the length of query_expansion, 6"));
  EXPECT_THAT(with({{"strategy", "most"}, {"length", 5}}), HasSubstr("expected one of fixed, min"));
  EXPECT_THAT(with({{"length", 5}}), HasSubstr("\"strategy\" is missing, expected fixed or min"));
  EXPECT_THAT(with({{"strategy", "min"}}), HasSubstr("\"length\""));
  EXPECT_THAT(with({{"strategy", "min"}, {"length", 5}, {"by", 1}}), HasSubstr("\"by\""));
  Write(folder_, "tokenizer_config.json", R"({"padding_side": "left"})");
  EXPECT_THAT(with({{"strategy", "min"}, {"length", 5}}), HasSubstr("padding_side"));
  std::filesystem::remove(folder_ + "/tokenizer_config.json");
  WriteNative({{"Transformer", ""}, {"Dense", "1_Dense"}});
  EXPECT_THAT(with({{"strategy", "min"}, {"length", 5}}), HasSubstr("no MultiVectorMask"));
  EXPECT_EQ(with(nullptr), "");
}

}  // namespace
}  // namespace linserve
