#include "access/token_table.h"

#include <gmock/gmock.h>

#include "core/status/retry_delay.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using absl::StatusCode;
using namespace std::chrono_literals;

constexpr char kToken[] = "0123456789abcdef";

std::string FileOf(const std::string& entry) { return R"({"tokens": [)" + entry + "]}"; }

TEST(TokenTable, KnowsThemByThemselvesOrTheirHashes) {
  const auto tokens = TokenTable::Parse(FileOf(
      R"({"name": "a", "token": "0123456789abcdef"},
         {"name": "b", "sha256": "ca978112CA1BBDCAFAC231B39A23DC4DA786EFF8147C4E72B9807785AFEE48BB"})"));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  ASSERT_NE(tokens->Find(kToken), nullptr);
  EXPECT_EQ(tokens->Find(kToken)->name(), "a");
  ASSERT_NE(tokens->Find("a"), nullptr);  // the hash is that of "a"
  EXPECT_EQ(tokens->Find("a")->name(), "b");
  EXPECT_EQ(tokens->Find("0123456789abcdeF"), nullptr);
  EXPECT_EQ(tokens->Find(""), nullptr);
}

TEST(TokenTable, MayInferWithAnyModelUnlessToldOtherwise) {
  const auto tokens = TokenTable::Parse(FileOf(R"({"name": "a", "token": "0123456789abcdef"})"));
  ASSERT_TRUE(tokens.ok());
  const Caller& caller = *tokens->Find(kToken);
  EXPECT_TRUE(caller.May(Right::kInfer).ok());
  EXPECT_THAT(caller.May(Right::kMetrics), IsStatus(StatusCode::kPermissionDenied, "metrics"));
  EXPECT_THAT(caller.May(Right::kControl), IsStatus(StatusCode::kPermissionDenied, "control"));
  EXPECT_TRUE(caller.MayUse("any").ok());
}

TEST(TokenTable, MayDoWhatTheFileSays) {
  const auto tokens = TokenTable::Parse(
      FileOf(R"({"name": "a", "token": "0123456789abcdef", "may": ["metrics"], "models": ["m"]})"));
  ASSERT_TRUE(tokens.ok());
  const Caller& caller = *tokens->Find(kToken);
  EXPECT_FALSE(caller.May(Right::kInfer).ok());
  EXPECT_TRUE(caller.May(Right::kMetrics).ok());
  EXPECT_FALSE(caller.Sees("m"));  // the caller may do nothing with it
}

TEST(TokenTable, TellsOfTheModelsThatACallerMayUseOrLoad) {
  for (const char* may : {"infer", "control"}) {
    const auto tokens = TokenTable::Parse(
        FileOf(R"({"name": "a", "token": "0123456789abcdef", "models": ["m"], "may": [")" +
               std::string(may) + R"("]})"));
    ASSERT_TRUE(tokens.ok());
    const Caller& caller = *tokens->Find(kToken);
    EXPECT_TRUE(caller.MayUse("m").ok());
    EXPECT_THAT(caller.MayUse("n"), IsStatus(StatusCode::kPermissionDenied, "may not use model"));
    EXPECT_FALSE(caller.Sees("n"));
  }
}

TEST(TokenTable, GivesNoRequestABetterPriorityThanTheFileSays) {
  const auto tokens = TokenTable::Parse(FileOf(R"({"name": "a", "token": "0123456789abcdef"})"));
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->Find(kToken)->Allowed(Priority::kHigh), Priority::kNormal);
  EXPECT_EQ(tokens->Find(kToken)->Allowed(Priority::kLow), Priority::kLow);
  const auto best = TokenTable::Parse(
      FileOf(R"({"name": "a", "token": "0123456789abcdef", "best_priority": 1})"));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->Find(kToken)->Allowed(Priority::kHigh), Priority::kHigh);
  EXPECT_EQ(best->Find(kToken)->Allowed(Priority::kNormal), Priority::kNormal);
  EXPECT_EQ(Caller("127.0.0.1").Allowed(Priority::kHigh), Priority::kHigh);  // without tokens
}

TEST(TokenTable, SaysWhatIsWrongAndNoSecret) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected JSON of the form"},
      {"{", "expected JSON of the form"},
      {R"({"tokens": "0123456789abcdef"})", "expected JSON of the form"},
      {R"({"tokens": []})", "is empty, so that nobody could call"},
      {FileOf(
           R"({"name": "a", "token": "0123456789abcdef", "may": ["infer"], "may": ["control"]})"),
       "each key once"},
      {std::string(1 << 20, '['), "expected JSON of the form"},
      {FileOf(R"({"name": "a", "token": 0123456789abcdef})"), "expected JSON of the form"},
      {FileOf(R"("0123456789abcdef")"), "token 0: expected an object"},
      {FileOf(R"({"token": "0123456789abcdef"})"), "token 0: expected a \"name\""},
      {FileOf(R"({"name": "", "token": "0123456789abcdef"})"), "token 0: expected a \"name\""},
      {FileOf(R"({"token": "0123456789abcdef", "name": ")" + std::string(129, 'a') + "\"}"),
       "of up to 128 bytes"},
      {FileOf(R"({"name": "a"})"), "either"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef", "sha256": "00"})"), "either"},
      {FileOf(R"({"name": "a", "token": "0123456789"})"), "16 characters or more"},
      {FileOf(R"({"name": "a", "sha256": "0123456789abcdef"})"), "64 hex digits"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef", "may": ["fly"]})"), "expected infer"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef", "may": []})"), "not empty"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef", "models": "m"})"), "a list of texts"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef", "best_priority": 0})"), "1, 2 or 3"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef", "requests_per_second": 0})"),
       "greater than 0"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef", "model": ["m"]})"),
       "there is no key 'model', expected name, token, sha256, may, models, requests_per_second"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef"},
                 {"name": "a", "token": "0123456789abcdeF"})"),
       "two tokens have the name"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef"},
                 {"name": "b", "token": "0123456789abcdef"})"),
       "the tokens 'a' and 'b' are the same"},
      {FileOf(R"({"name": "a", "token": "0123456789abcdef\n"})"), "without blanks at its ends"},
      {FileOf(R"({"name": "a", "token": " 0123456789abcdef"})"), "without blanks at its ends"}};
  for (const auto& [text, expected] : cases) {
    const auto tokens = TokenTable::Parse(text);
    EXPECT_THAT(tokens, IsStatus(StatusCode::kInvalidArgument, expected)) << text;
    EXPECT_THAT(std::string(tokens.status().message()),
                testing::Not(testing::HasSubstr("0123456789")));
  }
}

TEST(TokenTable, HoldsNoMoreThanEachCallCanLookAt) {
  const auto parse = [](size_t count) {
    std::string entries;
    for (size_t i = 0; i < count; ++i) {
      entries += (i == 0 ? "" : ",") + std::string(R"({"token": "0123456789abcdef)") +
                 std::to_string(i) + R"(", "name": ")" + std::to_string(i) + "\"}";
    }
    return TokenTable::Parse(FileOf(entries));
  };
  EXPECT_TRUE(parse(4096).ok());
  EXPECT_THAT(parse(4097), IsInvalid("there are 4097 tokens, expected at most 4096"));
}

TEST(Budget, StaysWithinADayWhateverTheRate) {
  for (const double rate : {1e-300, 1e-9, 1e300}) {
    Budget budget({.requests = rate, .bytes = rate});
    for (int i = 0; i < 3; ++i) budget.Spend(INT64_MAX, TimePoint{1h}).IgnoreError();
    const auto delay = RetryDelayOf(budget.Spend(1, TimePoint{1h}));
    EXPECT_LE(delay.value_or(0ms), 24h) << rate;
    EXPECT_GE(delay.value_or(0ms), 0ms) << rate;
  }
}

TEST(Budget, IsASecondsWorthAtOnceAndThenTheRate) {
  Budget budget({.requests = 2});
  const TimePoint start{1h};
  EXPECT_TRUE(budget.Spend(0, start).ok());
  EXPECT_TRUE(budget.Spend(0, start).ok());
  const absl::Status spent = budget.Spend(0, start);
  EXPECT_THAT(spent, IsStatus(StatusCode::kResourceExhausted, "requests_per_second"));
  EXPECT_EQ(RetryDelayOf(spent), 500ms);
  EXPECT_TRUE(budget.Spend(0, start + 500ms).ok());
  EXPECT_FALSE(budget.Spend(0, start + 500ms).ok());
  EXPECT_TRUE(budget.Spend(0, start + 1h).ok());
  EXPECT_TRUE(budget.Spend(0, start + 1h).ok());
  EXPECT_FALSE(budget.Spend(0, start + 1h).ok());
}

TEST(Budget, OfLessThanARequestASecondGivesTheFirstOneAtOnce) {
  Budget budget({.requests = 0.1});
  const TimePoint start{1h};
  EXPECT_TRUE(budget.Spend(0, start).ok());
  EXPECT_EQ(RetryDelayOf(budget.Spend(0, start)), 10s);
  EXPECT_FALSE(budget.Spend(0, start + 9s).ok());
  EXPECT_TRUE(budget.Spend(0, start + 10s).ok());
}

TEST(Budget, OfBytesIsPaidForAfterwards) {
  Budget budget({.bytes = 100});
  const TimePoint start{1h};
  EXPECT_TRUE(budget.Spend(1100, start).ok());
  const absl::Status spent = budget.Spend(1, start);
  EXPECT_THAT(spent, IsStatus(StatusCode::kResourceExhausted, "bytes_per_second"));
  EXPECT_EQ(RetryDelayOf(spent), 10s);
  EXPECT_TRUE(budget.Spend(1, start + 10s).ok());
  budget.Owe(499);
  EXPECT_EQ(RetryDelayOf(budget.Spend(1, start + 10s)), 5s);
}

}  // namespace
}  // namespace linserve
