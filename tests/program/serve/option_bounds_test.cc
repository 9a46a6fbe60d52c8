// Every option has the bounds that its help states, wherever it is set.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "program/serve/config.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class OptionBounds : public testing::Test {
 protected:
  OptionBounds() { config_.Bind(table_); }

  std::string Current(const std::string& name) const {
    for (const auto& option : table_.Describe()) {
      if (option.name == name) return option.current;
    }
    return "";
  }

  // Expects a value to be refused in a file, and by a flag or a variable, with a message that says
  // what is allowed and is short.
  void ExpectRefused(const OptionTable::Description& option, const json& value) {
    for (const absl::Status& status :
         {table_.Set(option.name, value, "file"),
          table_.SetText(option.name, value.is_string() ? value.get<std::string>() : value.dump(),
                         "variable")}) {
      const std::string shown = option.name + "=" + value.dump().substr(0, 100);
      EXPECT_THAT(status, IsInvalid("\"" + option.name + "\" is ")) << shown;
      EXPECT_THAT(std::string(status.message()), HasSubstr("expected " + option.allowed)) << shown;
      EXPECT_LE(status.message().size(), 1024U) << shown;
      EXPECT_EQ(Current(option.name), option.current) << shown;
    }
  }

  Config config_;
  OptionTable table_;
};

// Reads the two numbers of "an integer from 0 to 256", or of sizes and times.
std::pair<json, json> RangeOf(const std::string& allowed) {
  std::string words = allowed.substr(allowed.find(" from ") + 6);
  words = words.substr(0, words.find(','));  // "an integer from 0 to 1024, or a size such as ..."
  const size_t middle = words.find(" to ");
  return {json::parse(words.substr(0, middle)), json::parse(words.substr(middle + 4))};
}

TEST_F(OptionBounds, OfNumbersAreThoseThatTheHelpStates) {
  size_t numbers = 0;
  for (const OptionTable::Description& option : table_.Describe()) {
    if (option.allowed.find(" from ") == std::string::npos) continue;
    ++numbers;
    const bool list = option.allowed.find("list") != std::string::npos;
    const bool integer = option.allowed.find("integer") != std::string::npos;
    const auto [least, most] = RangeOf(option.allowed);
    const auto given = [&](const json& number) { return list ? json::array({number}) : number; };
    const json below = integer ? json(least.get<int64_t>() - 1) : json(least.get<double>() - 1e-3);
    const json above = integer ? json(most.get<int64_t>() + 1) : json(most.get<double>() * 1.001);
    for (const json& value :
         {below, above, json(INT64_MAX), json(INT64_MIN), json(UINT64_MAX), json(1e308),
          json(-1e308), json("x"), json(std::string(1 << 12, '9')), json(), json(json::object())}) {
      ExpectRefused(option, given(value));
    }
    ExpectRefused(option, true);
    if (integer) ExpectRefused(option, given(least.get<double>() + 0.5));
    for (const json& value : {least, most}) {
      EXPECT_TRUE(table_.Set(option.name, given(value), "file").ok()) << option.name;
      EXPECT_TRUE(table_.SetText(option.name, given(value).dump(), "variable").ok());
      EXPECT_EQ(json::parse(Current(option.name)), given(value)) << option.name;
    }
  }
  EXPECT_GT(numbers, 20U);
}

TEST_F(OptionBounds, OfAFewWordsAreThoseThatTheHelpLists) {
  for (const OptionTable::Description& option : table_.Describe()) {
    if (!option.choice && !option.is_flag) continue;
    for (const json& value :
         {json(""), json(std::string(1 << 12, 'x')), json(2), json(json::array())}) {
      ExpectRefused(option, value);
    }
  }
}

TEST_F(OptionBounds, OfTextsAreTheirForms) {
  for (const OptionTable::Description& option : table_.Describe()) {
    if (!option.allowed.empty()) continue;
    for (const json& value : {json(1), json(true), json(json::array())}) {
      EXPECT_THAT(table_.Set(option.name, value, "file"), IsInvalid("expected a text"))
          << option.name;
    }
    // A path is whatever the system opens; what has a form is refused with a short message.
    const absl::Status status = table_.SetText(option.name, std::string(1 << 12, 'x'), "variable");
    EXPECT_LE(status.message().size(), 1024U) << option.name;
  }
}

}  // namespace
}  // namespace linserve
