#include "client/commands/model_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "client/terminal/progress.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

ModelDescription Example() {
  ModelDescription model;
  model.name = "m";
  model.version = 3;
  model.architecture = "linformer.LinformerLM";
  model.state = "READY";
  model.parameters = 1234;
  model.dtype = "f32";
  model.padding = "packed";
  model.signature.inputs = {
      {"x", InputKind::kToken, {Axis::Ragged('n')}, false, 256},
      {"context", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(8)}, true, 0}};
  model.signature.outputs = {{"y", {Axis::Ragged('n'), Axis::Fixed(64)}}};
  model.signature.limits = {{'n', 512, "context"}};
  model.pooling = "mean";
  return model;
}

TEST(ModelListing, ShowsWhatAModelTakesAndGives) {
  const std::string table = ModelsTable({Example()});
  EXPECT_THAT(table, HasSubstr("x token [n] < 256, context float [m, 8] optional"));
  EXPECT_THAT(table, HasSubstr("y [n, 64]"));
  EXPECT_THAT(table, HasSubstr("n <= 512 without context"));
}

TEST(ModelListing, ShowsALimitOfTwoPartsOnce) {
  ModelDescription model = Example();
  model.signature.limits = {{'n', 512, ""}, {'n', 512, ""}, {'m', 512, ""}, {'n', 64, ""}};
  EXPECT_THAT(ModelsTable({model}), HasSubstr("  n <= 512, m <= 512, n <= 64 "));
}

TEST(ModelListing, ShowsWhatBecomesOfTextsAndRows) {
  ModelDescription model = Example();
  EXPECT_THAT(ModelsTable({model}), HasSubstr("  mean\n"));
  model.text = true;
  model.normalize = true;
  model.truncation = "right";
  model.max_text_tokens = 256;
  model.prompts = {"document", "query"};
  model.default_prompt = "query";
  const std::string table = ModelsTable({model});
  EXPECT_THAT(table, HasSubstr("  texts <= 256, n <= 512 without context  "));
  EXPECT_THAT(table, HasSubstr("  mean, normalized; prompts: document, query (default)\n"));
  const auto json = nlohmann::json::parse(ModelsJson({model}))[0];
  EXPECT_EQ(json["pooling"], "mean");
  EXPECT_EQ(json["normalize"], true);
  EXPECT_EQ(json["truncation"], "right");
  EXPECT_EQ(json["max_text_tokens"], 256);
  EXPECT_EQ(json["prompts"], model.prompts);
  EXPECT_EQ(json["default_prompt"], "query");
}

TEST(ModelListing, ShowsWhatIsAClassifierAndWhatAReranker) {
  ModelDescription model = Example();
  model.labels = {"fits"};
  EXPECT_THAT(ModelsTable({model}), HasSubstr("  re-ranker\n"));
  model.labels = {"sad", "glad"};
  EXPECT_THAT(ModelsTable({model}), HasSubstr("  2 classes\n"));
  EXPECT_EQ(nlohmann::json::parse(ModelsJson({model}))[0]["labels"], model.labels);
}

TEST(ModelListing, IsJsonToo) {
  const auto models = nlohmann::json::parse(ModelsJson({Example()}));
  EXPECT_EQ(models[0]["name"], "m");
  EXPECT_EQ(models[0]["inputs"][0]["vocabulary"], 256);
  EXPECT_EQ(models[0]["outputs"][0]["axes"], nlohmann::json::parse("[\"n\", 64]"));
  EXPECT_EQ(models[0]["limits"][0]["unless_input"], "context");
  EXPECT_EQ(ModelsJson({}), "[]");
}

TEST(ProgressText, GrowsToTheWholeBar) {
  EXPECT_EQ(ProgressText(0, 4, 0, 4), "[>   ] 0/4  0.0/s");
  EXPECT_EQ(ProgressText(2, 4, 0.5, 4), "[==> ] 2/4  4.0/s");
  EXPECT_EQ(ProgressText(4, 4, 1, 4), "[====] 4/4  4.0/s");
}

}  // namespace
}  // namespace linserve
