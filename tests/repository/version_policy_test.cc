#include "repository/version_policy.h"

#include "support/test_files.h"

namespace linserve {
namespace {

using testing::ElementsAre;

// Returns "NAME VERSION" of those that are chosen of versions 1, 2, 5 of "a" and 3 of "b".
std::vector<std::string> Chosen(const std::string& policy) {
  const auto parsed = VersionPolicy::Parse(policy);
  if (!parsed.ok()) return {parsed.status().ToString()};
  std::vector<std::string> chosen;
  for (const ModelDirectory& directory :
       parsed->Choose({{"a", 1, ""}, {"a", 2, ""}, {"a", 5, ""}, {"b", 3, ""}})) {
    chosen.push_back(directory.name + " " + std::to_string(directory.version));
  }
  return chosen;
}

TEST(VersionPolicy, ChoosesByRankOrNumber) {
  EXPECT_THAT(Chosen("all"), ElementsAre("a 1", "a 2", "a 5", "b 3"));
  EXPECT_THAT(Chosen("latest"), ElementsAre("a 5", "b 3"));
  EXPECT_THAT(Chosen("latest(2)"), ElementsAre("a 2", "a 5", "b 3"));
  EXPECT_THAT(Chosen("1, 3"), ElementsAre("a 1", "b 3"));
}

TEST(VersionPolicy, MayBeAnotherForSomeModels) {
  EXPECT_THAT(Chosen("latest; a=1,2"), ElementsAre("a 1", "a 2", "b 3"));
  EXPECT_THAT(Chosen("a=latest"), ElementsAre("a 5", "b 3"));
}

TEST(VersionPolicy, SaysWhatItExpected) {
  for (const char* wrong : {"", "newest", "latest(0)", "latest(x)", "0", "1,", "a=", "all; b=no"}) {
    EXPECT_THAT(VersionPolicy::Parse(wrong), IsInvalid("latest(N), versions such as 1,3")) << wrong;
  }
}

}  // namespace
}  // namespace linserve
