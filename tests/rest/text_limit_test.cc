// A model of which texts may have fewer tokens than it takes.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "rest/rest_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class TextLimit : public RestTest {
 protected:
  TextLimit() : RestTest({.text = true, .most_text_tokens = 5}) {}

  Reply Embed(const json& options) const {
    json body = {{"model", "tokens"}, {"inputs", "the server answers"}};
    body.update(options);
    return Post("/embed", body.dump());
  }
};

TEST_F(TextLimit, IsWhatTheDescriptionTells) {
  const httplib::Headers named = {{"linserve-model", "tokens"}};
  const Reply info = Of(LocalHttpClient(http_->port()).Get("/info", named));
  EXPECT_EQ(info.parsed["max_input_length"], 5);
}

TEST_F(TextLimit, RefusesLongerTextsThatAreNotToBeCut) {
  const Reply refused = Embed({{"truncate", false}});
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.body, HasSubstr("more than the 5 tokens"));
  EXPECT_THAT(refused.body, HasSubstr("so says max_text_tokens"));
  EXPECT_EQ(Embed({{"truncate", true}}).status, 200);
}

TEST_F(TextLimit, IsNotLiftedByALongerCut) {
  json body = {{"model", "tokens"}, {"input", "the server answers"}};
  for (const auto& [asked, kept] : {std::pair{3, 3}, {8, 5}}) {
    body["truncate_prompt_tokens"] = asked;
    EXPECT_EQ(Post("/v1/embeddings", body.dump()).parsed["usage"]["total_tokens"], kept);
  }
}

TEST_F(TextLimit, IsNotThatOfTokenIds) {
  EXPECT_EQ(Embed({{"inputs", {{1, 2, 3, 4, 5, 6, 7}}}, {"truncate", false}}).status, 200);
}

}  // namespace
}  // namespace linserve
