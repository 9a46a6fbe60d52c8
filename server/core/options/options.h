#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace linserve {

// Binds named options to the fields of a struct. One table drives the configuration file, the
// command line, the environment and the help, so that they cannot drift apart. The bound fields
// hold the defaults and must outlive the table.
class OptionTable {
 public:
  void Integer(std::string name, int64_t& field, int64_t least, int64_t most, std::string help);
  void Integers(std::string name, std::vector<int64_t>& field, int64_t least, int64_t most,
                std::string help);
  // Adds an option for a number of bytes, which may be written as a size: "4GiB".
  void Bytes(std::string name, int64_t& field, int64_t least, int64_t most, std::string help);
  void Number(std::string name, double& field, double least, double most, std::string help);
  void Flag(std::string name, bool& field, std::string help);
  void Text(std::string name, std::string& field, std::string help);
  void Texts(std::string name, std::map<std::string, std::string>& field, std::string help);
  void Choice(std::string name, std::string& field, std::vector<std::string> allowed,
              std::string help);
  // Adds an option for an enumeration, whose names stand in the order of its values from 0 on.
  template <typename Enum>
  void Choice(const std::string& name, Enum& field, const std::vector<std::string>& names,
              const std::string& help) {
    Chosen(
        name, names, help, [&field](size_t place) { field = static_cast<Enum>(place); },
        [&field] { return static_cast<size_t>(field); });
  }
  // Adds an option for a time: a number in the unit that the name ends with, _seconds or _ms, or a
  // text such as "30s".
  void Duration(std::string name, std::chrono::nanoseconds& field, double least, double most,
                std::string help);
  // Adds an option for a text with a form of its own. `set` returns an error that says what was
  // expected.
  using SetParsed = std::function<absl::Status(const std::string& text)>;
  using GetParsed = std::function<std::string()>;
  void Parsed(std::string name, SetParsed set, GetParsed get, std::string help);

  // Says that the option added last may change while the program runs: Adopt() takes it.
  void Live();

  // Begins a section: the options added from here on belong together. The title heads them in
  // --help and in a file with comments.
  void Section(std::string title);

  struct Description {
    std::string name;
    std::string help;
    std::string allowed;  // what is allowed, as in "an integer from 0 to 256"; empty: any text
    bool choice = false;  // `allowed` lists the few values that there are
    std::string current;  // as JSON
    std::string size{};   // the value as "128.0 MiB", of a number of bytes; else empty
    bool is_flag = false;
    bool live = false;      // it may change while the program runs
    std::string section{};  // title of the section that begins here; empty: none does
    std::string origin{};   // where the value stands; empty: it is the default
    // Where another value stands that this one overrides, and that value; empty: there is none.
    std::string overridden_origin{};
    std::string overridden{};
  };
  std::vector<Description> Describe() const;

  // Sets one option from JSON, or from the text of a flag or variable (parsed as JSON where the
  // option is not a text). INVALID_ARGUMENT names the option, the value and what is allowed, and
  // for an unknown option the one that it resembles. `where` says where the value stands.
  absl::Status Set(const std::string& name, const nlohmann::json& value, const std::string& where);
  absl::Status SetText(const std::string& name, const std::string& text, const std::string& where);

  // Sets all options of a JSON object.
  absl::Status SetAll(const nlohmann::json& object, const std::string& where);

  // Says in which option another table differs, with both values as JSON, and whether the option
  // took the other one's.
  struct Change {
    std::string name;
    std::string before;
    std::string after;
    bool taken = false;
  };
  // Takes those values of `fresh`, a table of the same options, that may change while the program
  // runs. Returns all that differs.
  std::vector<Change> Adopt(const OptionTable& fresh);

 private:
  struct Time {
    std::chrono::nanoseconds* field;
    double unit;  // in nanoseconds
  };
  struct Size {
    int64_t* field;
  };
  struct ParsedText {
    SetParsed set;
    GetParsed get;
  };
  using Field = std::variant<int64_t*, std::vector<int64_t>*, double*, bool*, std::string*,
                             std::map<std::string, std::string>*, Time, Size, ParsedText>;
  struct Option {
    std::string name;
    Field field;
    double least = 0;
    double most = 0;
    std::vector<std::string> allowed;
    std::string help;
    std::string section{};
    bool live = false;
    std::string origin{};
    std::string overridden_origin{};
    std::string overridden{};
  };

  void Add(Option option);
  void Chosen(const std::string& name, const std::vector<std::string>& names,
              const std::string& help, const std::function<void(size_t)>& set,
              const std::function<size_t()>& get);
  Option* Find(const std::string& name);
  static std::string Allowed(const Option& option);
  static std::string ShownSize(const Option& option);
  // Assigns the value to the option's field. The error says what was expected where the value does
  // not fit.
  static absl::Status Assign(const Option& option, const nlohmann::json& value);
  static nlohmann::json Current(const Option& option);
  absl::Status Unknown(const std::string& name, const std::string& where) const;

  std::vector<Option> options_;
  std::string section_;  // title for the option that is added next
};

}  // namespace linserve
