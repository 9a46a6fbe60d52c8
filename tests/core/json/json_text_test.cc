#include "core/json/json_text.h"

#include <nlohmann/json.hpp>

#include "support/test_files.h"

namespace linserve {
namespace {

std::string Nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ParseJson, TakesComments) {
  const auto parsed = ParseJson("// one\n{\"a\": [1, /* [[[[ */ 2]}  // {");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->dump(), R"({"a":[1,2]})");
}

TEST(ParseJson, RefusesWhatIsNestedTooDeep) {
  EXPECT_TRUE(ParseJson(Nested(64)).ok());
  EXPECT_THAT(ParseJson(Nested(65)), IsInvalid("nested more than 64 deep"));
  EXPECT_THAT(ParseJson(std::string(1'000'000, '[')), IsInvalid("nested more than 64 deep"));
  std::string objects;
  for (int i = 0; i < 100; ++i) objects += R"({"a":)";
  EXPECT_THAT(ParseJson(objects), IsInvalid("nested more than 64 deep"));
}

TEST(ParseJson, CountsNoBracketsOfTextsAndComments) {
  // Brackets that close in a text must not hide those that open.
  std::string hidden;
  for (int i = 0; i < 100; ++i) hidden += R"(["]]\"]",)";
  EXPECT_THAT(ParseJson(hidden), IsInvalid("nested more than 64 deep"));
  hidden.clear();
  for (int i = 0; i < 100; ++i) hidden += "[/*]*/";
  EXPECT_THAT(ParseJson(hidden), IsInvalid("nested more than 64 deep"));
  EXPECT_TRUE(ParseJson("[\"" + std::string(100, '[') + "\"]").ok());
  EXPECT_TRUE(ParseJson("[1] //" + std::string(100, '[')).ok());
}

TEST(ParseJson, RefusesAKeyThatStandsTwiceInAnObject) {
  EXPECT_THAT(ParseJson(R"({"a": 1, "b": 2, "a": 1})"),
              IsInvalid("the key 'a' stands twice in an object, expected once"));
  EXPECT_THAT(ParseJson(R"([{"x": {"b": 1, "\u0062": 2}}])"),
              IsInvalid("the key 'b' stands twice"));
  // In another object it may stand again.
  EXPECT_TRUE(ParseJson(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})").ok());
  const auto endless = ParseJson("{\"" + std::string(1'000'000, 'k') + "\": 1, \"" +
                                 std::string(1'000'000, 'k') + "\": 2}");
  EXPECT_LE(endless.status().message().size(), 256u);
  EXPECT_FALSE(endless.ok());
}

TEST(ParseJson, SaysWhatIsWrongInFewWords) {
  for (const std::string& text : {std::string("{\"a\""), "\"" + std::string(1'000'000, 'x'),
                                  std::string("[1e999]"), std::string("\""), std::string("\"\\"),
                                  std::string("/*"), std::string("\xff"), std::string()}) {
    const auto parsed = ParseJson(text);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status()));
    EXPECT_LE(parsed.status().message().size(), 256u);
    EXPECT_THAT(std::string(parsed.status().message()),
                testing::Not(testing::HasSubstr("json.exception")));
  }
}

}  // namespace
}  // namespace linserve
