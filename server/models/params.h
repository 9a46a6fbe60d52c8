#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

namespace linserve {

// The "params" object of a config.json: the arguments of a Python constructor. Each getter throws
// ConfigError naming the parameter, its value and what is allowed. Python's None is JSON's null
// and means "absent".
class Params {
 public:
  // `object` must outlive this. `name` is the architecture, for messages.
  Params(const nlohmann::json& object, std::string name);

  int64_t Positive(const std::string& key);
  int64_t Positive(const std::string& key, int64_t fallback);
  // A number of layers, each of which costs memory before its tensors are even looked for.
  int64_t Depth(const std::string& key);
  std::optional<int64_t> OptionalPositive(const std::string& key);
  bool Flag(const std::string& key, bool fallback);

  // An argument that changes no number at inference (dropout): accepted, whatever it is.
  void Ignore(const std::string& key);

  // Throws if a key was asked for by none of the above; lists those that were.
  void RefuseUnknown() const;

  // "linformer.Linformer: parameter \"dim\" is 30, expected ..."
  [[noreturn]] void Fail(const std::string& key, const std::string& expected) const;

 private:
  const nlohmann::json* Find(const std::string& key);

  const nlohmann::json& object_;
  std::string name_;
  std::set<std::string> known_;
};

}  // namespace linserve
