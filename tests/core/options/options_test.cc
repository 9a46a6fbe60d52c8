#include "core/options/options.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "support/test_files.h"

namespace linserve {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr int64_t kLargestInteger = std::numeric_limits<int64_t>::max();

class OptionsTest : public testing::Test {
 protected:
  OptionsTest() {
    table_.Integer("max_batch_tokens", tokens_, 1, 1000, "Rows a batch");
    table_.Integer("anything", anything_, std::numeric_limits<int64_t>::min(), kLargestInteger, "");
    table_.Integers("buckets", buckets_, 1, 64, "Lengths");
    table_.Number("delay_ms", delay_, 0, 2.5, "Wait");
    table_.Flag("warmup", warmup_, "Run first");
    table_.Text("address", address_, "HOST:PORT");
    table_.Choice("padding", padding_, {"packed", "bucket"}, "How");
    table_.Texts("prompts", prompts_, "By name");
    table_.Bytes("cache_bytes", cache_, 0, int64_t{8} << 30, "Results");
    table_.Live();
    table_.Duration("drain_seconds", drain_, 0, 600, "Wait");
    table_.Live();
    table_.Duration("pause_ms", pause_, 0, 60000, "Wait");
  }

  absl::Status Set(const std::string& name, const json& value) {
    return table_.Set(name, value, "linserve.json");
  }
  absl::Status SetText(const std::string& name, const std::string& text) {
    return table_.SetText(name, text, "--" + name);
  }

  int64_t tokens_ = 16;
  int64_t anything_ = 0;
  std::vector<int64_t> buckets_ = {8};
  double delay_ = 0.5;
  bool warmup_ = true;
  std::string address_ = "localhost:1";
  std::string padding_ = "packed";
  std::map<std::string, std::string> prompts_;
  int64_t cache_ = 0;
  std::chrono::nanoseconds drain_{0};
  std::chrono::nanoseconds pause_{0};
  OptionTable table_;
};

TEST_F(OptionsTest, SetFieldsOfEveryKindFromJson) {
  ASSERT_TRUE(table_
                  .SetAll({{"max_batch_tokens", 1000},
                           {"buckets", {1, 7, 64}},
                           {"delay_ms", 2},
                           {"warmup", false},
                           {"address", ""},
                           {"padding", "bucket"},
                           {"prompts", {{"query", "query: "}}}},
                          "linserve.json")
                  .ok());
  EXPECT_EQ(tokens_, 1000);
  EXPECT_THAT(buckets_, ElementsAre(1, 7, 64));
  EXPECT_EQ(delay_, 2.0);
  EXPECT_FALSE(warmup_);
  EXPECT_EQ(address_, "");
  EXPECT_EQ(padding_, "bucket");
  EXPECT_THAT(prompts_, ElementsAre(Pair("query", "query: ")));
}

TEST_F(OptionsTest, SetFieldsOfEveryKindFromText) {
  EXPECT_TRUE(SetText("max_batch_tokens", "1").ok());
  EXPECT_TRUE(SetText("buckets", "1,2, 64").ok());
  EXPECT_TRUE(SetText("delay_ms", "0.25").ok());
  EXPECT_TRUE(SetText("warmup", "false").ok());
  EXPECT_TRUE(SetText("address", "[::1]:80").ok());
  EXPECT_TRUE(SetText("padding", "bucket").ok());
  EXPECT_TRUE(SetText("prompts", R"({"a": "b"})").ok());
  EXPECT_EQ(tokens_, 1);
  EXPECT_THAT(buckets_, ElementsAre(1, 2, 64));
  EXPECT_EQ(delay_, 0.25);
  EXPECT_FALSE(warmup_);
  EXPECT_EQ(address_, "[::1]:80");
  EXPECT_EQ(padding_, "bucket");
  EXPECT_THAT(prompts_, ElementsAre(Pair("a", "b")));
}

TEST_F(OptionsTest, TakeAListInBracketsAndAnEmptyOne) {
  EXPECT_TRUE(SetText("buckets", "[3,4]").ok());
  EXPECT_THAT(buckets_, ElementsAre(3, 4));
  EXPECT_TRUE(SetText("buckets", "").ok());
  EXPECT_THAT(buckets_, IsEmpty());
}

TEST_F(OptionsTest, TakeATextAsItIsThoughItLooksLikeANumber) {
  EXPECT_TRUE(SetText("address", "true").ok());
  EXPECT_EQ(address_, "true");
  EXPECT_TRUE(SetText("address", "0.5").ok());
  EXPECT_EQ(address_, "0.5");
}

TEST_F(OptionsTest, TakeSizesAndTimesWithAUnitAndWithout) {
  using std::chrono::milliseconds;
  EXPECT_TRUE(Set("cache_bytes", "4GiB").ok());
  EXPECT_EQ(cache_, int64_t{4} << 30);
  EXPECT_TRUE(SetText("cache_bytes", "1.5 MiB").ok());
  EXPECT_EQ(cache_, 3 << 19);
  EXPECT_TRUE(SetText("cache_bytes", "5000").ok());
  EXPECT_EQ(cache_, 5000);
  EXPECT_TRUE(Set("drain_seconds", "2m").ok());
  EXPECT_EQ(drain_, std::chrono::minutes(2));
  EXPECT_TRUE(SetText("drain_seconds", "250ms").ok());
  EXPECT_EQ(drain_, milliseconds(250));
  EXPECT_TRUE(SetText("drain_seconds", "1.5").ok());
  EXPECT_EQ(drain_, milliseconds(1500));
  EXPECT_TRUE(SetText("pause_ms", "2s").ok());
  EXPECT_EQ(pause_, std::chrono::seconds(2));
  EXPECT_TRUE(Set("pause_ms", 2).ok());
  EXPECT_EQ(pause_, milliseconds(2));
}

TEST_F(OptionsTest, RefuseSizesAndTimesOutOfRangeOrOfAnotherUnit) {
  const std::string size = "expected an integer from 0 to 8589934592, or a size such as \"4GiB\"";
  for (const char* text : {"9GiB", "-1B", "infB", "nanMiB", "4G", "4s", "4GiBs", "", "5.5"}) {
    EXPECT_THAT(SetText("cache_bytes", text), IsInvalid(size)) << text;
  }
  for (const json& value : {json("5000"), json(5.5), json(true), json(-1)}) {
    EXPECT_THAT(Set("cache_bytes", value), IsInvalid(size)) << value;
  }
  const std::string time = "expected a number from 0 to 600, or a time such as \"30s\"";
  for (const char* text : {"11m", "-1s", "infs", "30x", "4GiB", ""}) {
    EXPECT_THAT(SetText("drain_seconds", text), IsInvalid(time)) << text;
  }
  EXPECT_EQ(cache_, 0);
  EXPECT_EQ(drain_.count(), 0);
}

TEST_F(OptionsTest, SayWhereTheirValuesStandAndWhatTheseOverride) {
  const auto described = [this](const std::string& name) {
    for (const auto& option : table_.Describe()) {
      if (option.name == name) return option;
    }
    return OptionTable::Description();
  };
  EXPECT_EQ(described("cache_bytes").origin, "");
  ASSERT_TRUE(table_.Set("cache_bytes", 5, "file").ok());
  EXPECT_EQ(described("cache_bytes").origin, "file");
  EXPECT_EQ(described("cache_bytes").overridden_origin, "");  // a default is there to be overridden
  ASSERT_TRUE(table_.Set("cache_bytes", "4KiB", "variable").ok());
  EXPECT_FALSE(table_.Set("cache_bytes", "wrong", "flag").ok());
  EXPECT_EQ(described("cache_bytes").origin, "variable");
  EXPECT_EQ(described("cache_bytes").overridden_origin, "file");
  EXPECT_EQ(described("cache_bytes").overridden, "5");
  EXPECT_EQ(described("cache_bytes").current, "4096");
  EXPECT_EQ(described("cache_bytes").size, "4.0 KiB");
  // A value that was there before overrides nothing.
  ASSERT_TRUE(table_.Set("warmup", false, "file").ok());
  ASSERT_TRUE(table_.Set("warmup", false, "flag").ok());
  EXPECT_EQ(described("warmup").origin, "flag");
  EXPECT_EQ(described("warmup").overridden_origin, "");
}

TEST_F(OptionsTest, AdoptWhatMayChangeWhileTheProgramRunsAndSayWhatElseDiffers) {
  int64_t tokens = 16;
  int64_t cache = 4096;
  std::chrono::nanoseconds drain = std::chrono::milliseconds(1500);
  OptionTable fresh;
  fresh.Integer("max_batch_tokens", tokens, 1, 1000, "");
  fresh.Bytes("cache_bytes", cache, 0, int64_t{8} << 30, "");
  fresh.Duration("drain_seconds", drain, 0, 600, "");
  OptionTable table;
  table.Integer("max_batch_tokens", tokens_, 1, 1000, "");
  table.Bytes("cache_bytes", cache_, 0, int64_t{8} << 30, "");
  table.Live();
  table.Duration("drain_seconds", drain_, 0, 600, "");
  table.Live();
  ASSERT_TRUE(fresh.Set("max_batch_tokens", 17, "file").ok());
  for (int round = 0; round < 2; ++round) {
    const auto changes = table.Adopt(fresh);
    // What needs a new start differs until there is one.
    ASSERT_EQ(changes.size(), round == 0 ? 3U : 1U);
    EXPECT_EQ(changes[0].name, "max_batch_tokens");
    EXPECT_FALSE(changes[0].taken);
    EXPECT_EQ(tokens_, 16);
    if (round > 0) continue;
    EXPECT_EQ(changes[1].name + changes[1].before + ">" + changes[1].after, "cache_bytes0>4096");
    EXPECT_TRUE(changes[1].taken && changes[2].taken);
    EXPECT_EQ(changes[2].after, "1.5");
    EXPECT_EQ(cache_, 4096);
    EXPECT_EQ(drain_, std::chrono::milliseconds(1500));
  }
}

TEST_F(OptionsTest, RefuseWhatIsOutOfRangeOrOfAnotherKindAndKeepTheField) {
  const std::vector<std::pair<std::string, json>> cases = {{"max_batch_tokens", 0},
                                                           {"max_batch_tokens", 1001},
                                                           {"max_batch_tokens", 1.5},
                                                           {"max_batch_tokens", "5"},
                                                           {"max_batch_tokens", nullptr},
                                                           {"max_batch_tokens", true},
                                                           {"buckets", 5},
                                                           {"buckets", {0, 5}},
                                                           {"buckets", {5, 65}},
                                                           {"buckets", {6, 5}},
                                                           {"buckets", {5, "6"}},
                                                           {"buckets", {5, 6.5}},
                                                           {"delay_ms", -0.1},
                                                           {"delay_ms", 2.6},
                                                           {"delay_ms", "1"},
                                                           {"prompts", {"query"}},
                                                           {"prompts", {{"query", 1}}},
                                                           {"warmup", 1},
                                                           {"warmup", "true"},
                                                           {"address", 5},
                                                           {"padding", "fixed"},
                                                           {"padding", json::array()},
                                                           {"padding", false},
                                                           {"max_batch_tokens", -kLargestInteger},
                                                           {"max_batch_tokens", 1e300},
                                                           {"address", nullptr}};
  for (const auto& [name, value] : cases) {
    EXPECT_THAT(Set(name, value),
                IsInvalid("linserve.json: \"" + name + "\" is " + value.dump() + ", expected "));
  }
  EXPECT_EQ(tokens_, 16);
  EXPECT_THAT(buckets_, ElementsAre(8));
  EXPECT_EQ(delay_, 0.5);
  EXPECT_TRUE(warmup_);
  EXPECT_EQ(address_, "localhost:1");
  EXPECT_EQ(padding_, "packed");
}

TEST_F(OptionsTest, SayWhatIsAllowed) {
  EXPECT_THAT(Set("max_batch_tokens", 0), IsInvalid("expected an integer from 1 to 1000"));
  EXPECT_THAT(Set("buckets", 0), IsInvalid("expected an ascending list of integers from 1 to 64"));
  EXPECT_THAT(Set("delay_ms", 3), IsInvalid("expected a number from 0 to 2.5"));
  EXPECT_THAT(Set("warmup", 3), IsInvalid("expected true or false"));
  EXPECT_THAT(Set("address", 3), IsInvalid("expected a text"));
  EXPECT_THAT(Set("padding", 3), IsInvalid("expected one of packed bucket"));
}

TEST_F(OptionsTest, RefuseTextThatIsNoValueOfTheOption) {
  EXPECT_THAT(SetText("max_batch_tokens", "many"),
              IsInvalid("--max_batch_tokens: \"max_batch_tokens\" is \"many\", expected an"));
  for (const char* text : {"", "1x", "0x10", "1e2", "1.0", "nan", "[1]", "1 2"}) {
    EXPECT_THAT(SetText("max_batch_tokens", text), IsInvalid("expected an integer")) << text;
  }
  for (const char* text : {"", "nan", "inf", "1e999", "-1", "true"}) {
    EXPECT_THAT(SetText("delay_ms", text), IsInvalid("expected a number")) << text;
  }
  for (const char* text : {"1,", "a", "1;2", "[1", "2,1"}) {
    EXPECT_THAT(SetText("buckets", text), IsInvalid("expected an ascending list")) << text;
  }
  for (const char* text : {"", "yes", "1", "True"}) {
    EXPECT_THAT(SetText("warmup", text), IsInvalid("expected true or false")) << text;
  }
}

TEST_F(OptionsTest, TakeEveryIntegerThatAnInt64HoldsAndNoOther) {
  for (const int64_t value :
       {kLargestInteger, -kLargestInteger, std::numeric_limits<int64_t>::min()}) {
    EXPECT_TRUE(SetText("anything", std::to_string(value)).ok());
    EXPECT_EQ(anything_, value);
  }
  anything_ = 5;
  EXPECT_THAT(SetText("anything", "9223372036854775808"), IsInvalid("expected an integer"));
  EXPECT_THAT(SetText("anything", "18446744073709551615"), IsInvalid("expected an integer"));
  EXPECT_THAT(SetText("anything", "-9223372036854775809"), IsInvalid("expected an integer"));
  EXPECT_EQ(anything_, 5);
}

TEST_F(OptionsTest, RefuseBytesThatAreNotUtf8WithoutThrowing) {
  // Neither depth nor length of what stands there matters.
  for (const std::string& text : {std::string(130'000, '['), std::string(130'000, '1'),
                                  std::string(130'000, 'x'), "\"" + std::string(130'000, 'x')}) {
    const absl::Status status = SetText("max_batch_tokens", text);
    EXPECT_THAT(status, IsInvalid("expected an integer"));
    EXPECT_LT(status.message().size(), 400u);
  }
  EXPECT_LT(Set(std::string(1'000'000, 'x'), 1).message().size(), 200u);
  EXPECT_THAT(SetText("padding", "p\xff"), IsInvalid("expected one of packed bucket"));
  EXPECT_THAT(SetText("warmup", "\xc3"), IsInvalid("expected true or false"));
  EXPECT_TRUE(SetText("address", "\xff").ok());
  EXPECT_EQ(table_.Describe().size(), 11u);
}

TEST_F(OptionsTest, NameTheOptionThatAnUnknownOneResembles) {
  EXPECT_THAT(Set("max_batch_token", 1),
              IsInvalid("linserve.json: unknown option \"max_batch_token\"; did you mean "
                        "\"max_batch_tokens\"?"));
  EXPECT_THAT(Set("Warmup", true), IsInvalid("did you mean \"warmup\"?"));
  EXPECT_THAT(Set("xyzxyz", 1), testing::Not(IsInvalid("did you mean")));
  EXPECT_THAT(SetText("bucket", "1"), IsInvalid("did you mean \"buckets\"?"));
  EXPECT_THAT(OptionTable().Set("warmup", true, "x"), IsInvalid("x: unknown option \"warmup\""));
}

TEST_F(OptionsTest, StopAtTheFirstFaultOfAnObject) {
  EXPECT_THAT(table_.SetAll({{"delay_ms", 9}, {"warmup", false}}, "w"), IsInvalid("\"delay_ms\""));
  EXPECT_TRUE(warmup_);
  EXPECT_THAT(table_.SetAll(json::array({1}), "w"), IsInvalid("w: expected a JSON object"));
  EXPECT_TRUE(table_.SetAll(json::object(), "w").ok());
}

TEST_F(OptionsTest, AreDescribedWithTheirRangesAndCurrentValues) {
  ASSERT_TRUE(Set("padding", "bucket").ok());
  std::map<std::string, OptionTable::Description> described;
  for (const auto& option : table_.Describe()) described[option.name] = option;
  EXPECT_EQ(described["max_batch_tokens"].help, "Rows a batch");
  EXPECT_EQ(described["max_batch_tokens"].allowed, "an integer from 1 to 1000");
  EXPECT_EQ(described["max_batch_tokens"].current, "16");
  EXPECT_EQ(described["buckets"].current, "[8]");
  EXPECT_EQ(described["delay_ms"].current, "0.5");
  EXPECT_EQ(described["address"].help, "HOST:PORT");
  EXPECT_EQ(described["address"].current, "\"localhost:1\"");
  EXPECT_EQ(described["padding"].allowed, "one of packed bucket");
  EXPECT_TRUE(described["padding"].choice);
  EXPECT_EQ(described["padding"].current, "\"bucket\"");
  EXPECT_TRUE(described["warmup"].is_flag);
  EXPECT_FALSE(described["padding"].is_flag);
}

}  // namespace
}  // namespace linserve
