// What a configuration calls the classes that a model scores.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "models/model_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kClassifier = "transformers.BertForSequenceClassification";

std::string Sizes(const json& more) {
  json params = {{"vocab_size", 20},        {"hidden_size", 8},
                 {"num_hidden_layers", 1},  {"num_attention_heads", 2},
                 {"intermediate_size", 16}, {"max_position_embeddings", 12}};
  params.update(more);
  return params.dump();
}

class ClassLabelsTest : public ModelFixture {
 protected:
  ModelReport ReportOf(const json& more) {
    const auto report = InspectModel(Init(kClassifier, Sizes(more)));
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : ModelReport();
  }

  std::vector<std::string> LabelsOf(const json& more) { return *ReportOf(more).info.labels; }
  ProblemType ProblemOf(const json& more) { return ReportOf(more).info.problem_type; }

  static std::string ErrorOf(const json& more) { return InitError(kClassifier, Sizes(more)); }
};

TEST_F(ClassLabelsTest, AreThoseOfId2label) {
  EXPECT_THAT(LabelsOf({{"id2label", {{"1", "yes"}, {"0", "no"}}}}), ElementsAre("no", "yes"));
  EXPECT_THAT(LabelsOf({{"id2label", {{"0", 3}, {"1", "four"}}}}), ElementsAre("3", "four"));
  json many;
  for (int i = 0; i < 12; ++i) many[std::to_string(i)] = "class " + std::to_string(i);
  EXPECT_EQ(LabelsOf({{"id2label", many}, {"num_labels", 12}})[11], "class 11");
}

TEST_F(ClassLabelsTest, AreNumberedWithoutNames) {
  EXPECT_THAT(LabelsOf(json::object()), ElementsAre("LABEL_0", "LABEL_1"));
  EXPECT_THAT(LabelsOf({{"num_labels", 1}, {"id2label", nullptr}}), ElementsAre("LABEL_0"));
}

// So the package has it, whose tensors are of that number.
TEST_F(ClassLabelsTest, AreNumberedWhereTheirNamesAreNotAsMany) {
  EXPECT_THAT(LabelsOf({{"num_labels", 2}, {"id2label", {{"0", "a"}}}}),
              ElementsAre("LABEL_0", "LABEL_1"));
}

TEST_F(ClassLabelsTest, MayBeRightTogetherIfTheConfigurationSaysSo) {
  EXPECT_EQ(ProblemOf(json::object()), ProblemType::kSingleLabel);
  EXPECT_EQ(ProblemOf({{"problem_type", "single_label_classification"}}),
            ProblemType::kSingleLabel);
  EXPECT_EQ(ProblemOf({{"problem_type", "multi_label_classification"}}), ProblemType::kMultiLabel);
  EXPECT_EQ(ProblemOf({{"problem_type", "regression"}}), ProblemType::kRegression);
  EXPECT_EQ(Make(kClassifier, Sizes({{"problem_type", "multi_label_classification"}}))
                ->info()
                .problem_type,
            ProblemType::kMultiLabel);
}

TEST_F(ClassLabelsTest, ThatAreNoneOrTooManyAreRefusedByName) {
  EXPECT_THAT(ErrorOf({{"num_labels", 0}}), HasSubstr("\"num_labels\" is 0"));
  EXPECT_THAT(ErrorOf({{"num_labels", 65537}}),
              HasSubstr("\"num_labels\" is 65537, expected an integer from 1 to 65536"));
  for (const json& wrong :
       {json::object(), json{{"1", "a"}}, json{{"0", nullptr}}, json{{"0", 1.5}},
        json::array({"a"}), json("a"), json{{"0", "a"}, {"01", "b"}}}) {
    EXPECT_THAT(ErrorOf({{"id2label", wrong}}), HasSubstr("\"id2label\" is " + wrong.dump() +
                                                          ", expected an object of 1 to 65536"));
  }
  EXPECT_THAT(ErrorOf({{"problem_type", "ranking"}}), HasSubstr("expected one of regression"));
  EXPECT_THAT(ErrorOf({{"problem_type", "single_label_classification"}, {"num_labels", 1}}),
              HasSubstr("expected regression, or more labels than one"));
}

TEST_F(ClassLabelsTest, AreToldToWhoeverInspectsTheModel) {
  EXPECT_THAT(ReportOf({{"id2label", {{"0", "no"}, {"1", "yes"}}}}).facts,
              Contains(Pair("classes", "2: 'no', 'yes'")));
  EXPECT_THAT(ReportOf({{"num_labels", 9}, {"problem_type", "multi_label_classification"}}).facts,
              Contains(Pair("classes, each by itself",
                            "9: 'LABEL_0', 'LABEL_1', 'LABEL_2', 'LABEL_3', 'LABEL_4', 'LABEL_5', "
                            "'LABEL_6', 'LABEL_7', ...")));
}

TEST_F(ClassLabelsTest, AreNoneOfAnEncoder) {
  const auto report = InspectModel(Init("transformers.BertModel", Sizes(json::object())));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->info.labels, nullptr);
}

}  // namespace
}  // namespace linserve
