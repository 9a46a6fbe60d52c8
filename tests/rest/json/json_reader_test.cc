#include "core/json/json_reader.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/json/json_number.h"
#include "rest/json/json_members.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = JsonReader::Kind;

absl::Status Always() { return absl::OkStatus(); }

absl::Status Skipped(const std::string& text) {
  JsonReader reader(text, Always);
  absl::Status status = reader.Skip().status();
  return status.ok() ? reader.End() : status;
}

TEST(JsonReader, ReadsWhatItsCallerAsksFor) {
  const std::string text = R"( {"a": [1, -2.5e3], "b": "x\ty", "c": true, "d": null} )";
  JsonReader reader(text, Always);
  std::vector<std::string> seen;
  const absl::Status status = reader.Object([&](const std::string& key) -> absl::Status {
    if (key == "b") {
      seen.push_back(*reader.String());
    } else if (key == "c") {
      seen.emplace_back(*reader.Bool() ? "yes" : "no");
    } else {
      seen.emplace_back(*reader.Skip());
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(reader.End().ok());
  EXPECT_THAT(seen, ElementsAre("[1, -2.5e3]", "x\ty", "yes", "null"));
}

TEST(JsonReader, TellsWhatComesNext) {
  JsonReader reader(R"([[1, 2, 3], "a"])", Always);
  EXPECT_EQ(reader.Next(), Kind::kArray);
  EXPECT_EQ(reader.NextInside(), Kind::kArray);
  EXPECT_EQ(reader.ElementsAhead(), 3U);
  EXPECT_EQ(JsonReader("[ ]", Always).NextInside(), Kind::kNone);
  EXPECT_EQ(JsonReader("{}", Always).NextInside(), Kind::kNone);
}

TEST(JsonReader, SaysWhereTheTextIsNoJson) {
  for (const auto& [text, byte] : std::vector<std::pair<std::string, int>>{
           {"", 1},           {"{", 2},       {"[1 2]", 4},       {"[1,]", 4},     {"{\"a\" 1}", 6},
           {"{\"a\":1,}", 8}, {"{1:2}", 2},   {"01", 2},          {"1.", 3},       {"-", 2},
           {"1e+", 4},        {".5", 1},      {"+1", 1},          {"nul", 1},      {"truE", 1},
           {"\"a", 3},        {"\"\\", 3},    {"[1]]", 4},        {"'a'", 1},      {"NaN", 1},
           {"\"a\nb\"", 3},   {"\"\\x\"", 2}, {"\"\\u12g4\"", 2}, {"\"\\u12\"", 2}}) {
    const absl::Status status = Skipped(text);
    EXPECT_EQ(status.message(),
              "the body is not JSON: a syntax error at byte " + std::to_string(byte))
        << text;
  }
  EXPECT_FALSE(Skipped(std::string("[1\0]", 4)).ok());
}

TEST(JsonReader, RefusesWhatIsNestedTooDeeply) {
  EXPECT_TRUE(Skipped(std::string(32, '[') + std::string(32, ']')).ok());
  EXPECT_THAT(std::string(Skipped(std::string(33, '[')).message()),
              HasSubstr("nested more than 32 deep"));
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += R"({"a":)";
  EXPECT_THAT(std::string(Skipped(objects).message()), HasSubstr("nested more than 32 deep"));
}

TEST(JsonReader, NamesHalfACharacterAndBytesThatAreNone) {
  EXPECT_EQ(Skipped(R"(["\ud800"])").message(),
            "the body holds a lone surrogate, \\ud800, which is half a character, at byte 3");
  EXPECT_THAT(std::string(Skipped(R"(["\ud800\u0041"])").message()), HasSubstr("a lone surrogate"));
  EXPECT_THAT(std::string(Skipped(R"({"a\udc00": 1})").message()), HasSubstr("a lone surrogate"));
  EXPECT_EQ(Skipped("[\"ab\xff\"]").message(),
            "the body holds a string that is not UTF-8 at byte 5");
  EXPECT_FALSE(Skipped("[\"\xed\xa0\x80\"]").ok());  // a surrogate in UTF-8's clothes
  EXPECT_EQ(*JsonReader(R"("\ud83d\ude00 \u00e9\u20AC\/")", Always).String(),
            "\xf0\x9f\x98\x80 \xc3\xa9\xe2\x82\xac/");
}

TEST(JsonReader, PassesAByteOrderMarkOver) { EXPECT_TRUE(Skipped("\xef\xbb\xbf{}").ok()); }

TEST(JsonReader, EndsWhenNobodyWaitsAnyMore) {
  std::string text = "[0";
  while (text.size() < (1 << 20)) text += ",0";
  text += ']';
  int asked = 0;
  JsonReader reader(text, [&] {
    return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("the caller left");
  });
  EXPECT_EQ(reader.Skip().status(), absl::CancelledError("the caller left"));
  EXPECT_EQ(asked, 3);
}

TEST(JsonMembers, KnowsSomeAndPassesOthersOver) {
  const auto read = [](const std::string& text, std::string& model, bool& normalize) {
    JsonReader reader(text, Always);
    return ReadBody(reader,
                    {{"model", [&] { return ReadName(reader, "model", model); }},
                     {"normalize", [&] { return ReadBool(reader, "normalize", normalize); }}});
  };
  std::string model;
  bool normalize = true;
  EXPECT_TRUE(read(R"({"user": [{}, {"model": 1}], "model": "a", "user": 2, "normalize": null})",
                   model, normalize)
                  .ok());
  EXPECT_EQ(model, "a");
  EXPECT_TRUE(normalize);
  EXPECT_EQ(read(R"({"model": "a", "model": "b"})", model, normalize).message(),
            "'model' is given more than once");
  EXPECT_EQ(read(R"({"normalize": 1})", model, normalize).message(),
            "'normalize': expected a bool");
  EXPECT_EQ(read(" ", model, normalize).message(), "expected a JSON object; the body is empty");
  EXPECT_EQ(read("[]", model, normalize).message(), "the body is not a JSON object");
  EXPECT_THAT(std::string(read("{} {}", model, normalize).message()), HasSubstr("at byte 4"));
}

TEST(JsonNumber, KnowsWhatItsTypeHolds) {
  EXPECT_EQ(IntegerOf<int8_t>("-128"), -128);
  EXPECT_EQ(IntegerOf<int8_t>("128"), std::nullopt);
  EXPECT_EQ(IntegerOf<uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(IntegerOf<uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(IntegerOf<uint8_t>("-0"), 0);
  EXPECT_EQ(IntegerOf<int64_t>("1.0"), std::nullopt);
  EXPECT_EQ(DoubleOf("1e-400"), 0.0);
  EXPECT_EQ(DoubleOf("1e999"), std::nullopt);
  EXPECT_EQ(DoubleOf("1" + std::string(1'000'000, '0')), std::nullopt);
  EXPECT_EQ(DoubleOf("0." + std::string(1'000'000, '3')), 1.0 / 3);
  EXPECT_EQ(DoubleOf("null"), std::nullopt);
}

}  // namespace
}  // namespace linserve
