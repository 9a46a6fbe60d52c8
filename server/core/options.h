#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace linserve {

// Named options bound to the fields of a struct: one table drives the configuration file, the
// command line, the environment and the help, so that they cannot drift apart. The bound fields
// hold the defaults and must outlive the table.
class OptionTable {
 public:
  void Integer(std::string name, int64_t& field, int64_t least, int64_t most, std::string help);
  void Integers(std::string name, std::vector<int64_t>& field, int64_t least, int64_t most,
                std::string help);
  void Number(std::string name, double& field, double least, double most, std::string help);
  void Flag(std::string name, bool& field, std::string help);
  void Text(std::string name, std::string& field, std::string help);
  void Choice(std::string name, std::string& field, std::vector<std::string> allowed,
              std::string help);

  // The option whose name is nearest to this one; "" if more letters than that are to be changed.
  std::string NearestTo(const std::string& name, size_t most_changes = SIZE_MAX) const;

  struct Description {
    std::string name;
    std::string help;     // with the allowed values
    std::string current;  // as JSON
    bool is_flag = false;
  };
  std::vector<Description> Describe() const;

  // Sets one option from JSON, or from the text of a flag or variable (parsed as JSON where the
  // option is not a text). INVALID_ARGUMENT names the option, the value and what is allowed; for
  // an unknown option, the one that it resembles. `where` says where the value stands.
  absl::Status Set(const std::string& name, const nlohmann::json& value, const std::string& where);
  absl::Status SetText(const std::string& name, const std::string& text, const std::string& where);

  // Sets all options of a JSON object.
  absl::Status SetAll(const nlohmann::json& object, const std::string& where);

 private:
  using Field = std::variant<int64_t*, std::vector<int64_t>*, double*, bool*, std::string*>;
  struct Option {
    std::string name;
    Field field;
    double least = 0;
    double most = 0;
    std::vector<std::string> allowed;
    std::string help;
  };

  const Option* Find(const std::string& name) const;
  static std::string Allowed(const Option& option);
  static bool Assign(const Option& option, const nlohmann::json& value);
  absl::Status Unknown(const std::string& name, const std::string& where) const;

  std::vector<Option> options_;
};

}  // namespace linserve
