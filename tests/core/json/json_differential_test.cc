// Compares the reader with another one, on texts that are JSON and on texts that nearly are.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/json/json_number.h"
#include "core/json/json_reader.h"

namespace linserve {
namespace {

using nlohmann::json;
using Kind = JsonReader::Kind;

std::optional<json> NumberOf(std::string_view text) {
  if (const auto whole = IntegerOf<uint64_t>(text)) return json(*whole);
  if (const auto negative = IntegerOf<int64_t>(text)) return json(*negative);
  const auto real = DoubleOf(text);
  return real ? std::optional(json(*real)) : std::nullopt;
}

absl::Status Build(JsonReader& reader, json& value) {
  value = nullptr;
  switch (reader.Next()) {
    case Kind::kObject:
      value = json::object();
      return reader.Object([&](const std::string& key) { return Build(reader, value[key]); });
    case Kind::kArray:
      value = json::array();
      return reader.Array([&] { return Build(reader, value.emplace_back()); });
    case Kind::kString: {
      const auto text = reader.String();
      if (text.ok()) value = *text;
      return text.status();
    }
    case Kind::kNumber: {
      const auto text = reader.Number();
      if (!text.ok()) return text.status();
      const auto number = NumberOf(*text);
      if (!number) return absl::OutOfRangeError("too large");
      value = *number;
      return absl::OkStatus();
    }
    case Kind::kBool: {
      const auto truth = reader.Bool();
      if (truth.ok()) value = *truth;
      return truth.status();
    }
    default:
      return reader.Skip().status();
  }
}

std::optional<json> Ours(const std::string& text) {
  JsonReader reader(text, [] { return absl::OkStatus(); });
  json value;
  absl::Status status = Build(reader, value);
  if (status.ok()) status = reader.End();
  return status.ok() ? std::optional(value) : std::nullopt;
}

std::optional<json> Theirs(const std::string& text) {
  try {
    return json::parse(text);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

// Changes, doubles, drops or moves a few bytes.
std::string Mutated(std::string text, std::mt19937& random) {
  static constexpr char kBytes[] =
      "{}[]:,\"\\/u0123456789abcdefntrE+-. \n\t\x1f\x7f\x80\xbf\xc3\xa9\xed\xa0\xf0\x9f\xff";
  const auto below = [&](size_t bound) { return random() % bound; };
  for (size_t left = 1 + below(3); left > 0 && !text.empty(); --left) {
    const size_t at = below(text.size());
    switch (below(4)) {
      case 0:
        text[at] = kBytes[below(sizeof(kBytes) - 1)];
        break;
      case 1:
        text.insert(at, 1, kBytes[below(sizeof(kBytes) - 1)]);
        break;
      case 2:
        text.erase(at, 1 + below(3));
        break;
      default:
        text.insert(below(text.size()), text.substr(at, 1 + below(8)));
    }
  }
  return text;
}

TEST(JsonReader, ReadsAsAnotherReaderDoes) {
  const std::vector<std::string> seeds = {
      R"({"model":"a","input":["x\ty","\u00e9\ud83d\ude00","ü€😀"],"n":null,"t":true,"f":false})",
      R"([0,-0,1.5e-3,-2E+5,1e307,-1e-400,18446744073709551615,18446744073709551616,0.1])",
      R"({"a":{"b":[[],[[]],{},[{}]],"a":1,"a":2}, "" : "\"\\\/\b\f\n\r\t"})",
      " [ 1 , [ 2 ] ,\n{ \"k\" :\t3 } ] ",
      "\xef\xbb\xbf[\"\xef\xbf\xbf\xf4\x8f\xbf\xbf\xed\x9f\xbf\"]"};
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int valid = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string text = Mutated(seeds[static_cast<size_t>(i) % seeds.size()], random);
    const auto theirs = Theirs(text);
    ASSERT_EQ(Ours(text), theirs) << text;
    valid += theirs ? 1 : 0;
  }
  EXPECT_GT(valid, 100);
}

}  // namespace
}  // namespace linserve
