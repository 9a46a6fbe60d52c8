#include "serving/prompts.h"

#include "support/test_files.h"

namespace linserve {
namespace {

TEST(PromptOf, ANameThatThereIsNotTellsThoseThatThereAreOrWhereTheyWouldStand) {
  ServedModel model;
  model.name = "m";
  EXPECT_EQ(*PromptOf(model, ""), "");
  const auto none = PromptOf(model, "query");
  EXPECT_THAT(none,
              IsInvalid("model 'm' has no prompt 'query'; it has none at all (\"prompts\" in"));
  EXPECT_THAT(none, IsInvalid("config_sentence_transformers.json"));
  model.prompts = {{"document", ""}, {"query", "the "}};
  EXPECT_EQ(*PromptOf(model, "query"), "the ");
  EXPECT_THAT(PromptOf(model, "q"), IsInvalid("expected one of 'document', 'query'"));
}

}  // namespace
}  // namespace linserve
