#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/config/sentence_modules.h"

namespace linserve {

// Holds what config.json says of the network: the arguments of a Python constructor, and optionally
// the wrapper around the module and the forward arguments that are no tensors.
struct NetworkConfig {
  std::string architecture;  // "linformer.LinformerLM"
  nlohmann::json params = nlohmann::json::object();
  nlohmann::json wrapper = nullptr;  // null: none; else {"type": ..., its arguments}
  nlohmann::json call = nlohmann::json::object();
  // Says that `params` are the package's own file, which holds much besides the arguments.
  bool foreign = false;
  SentenceModules sentence{};  // what a foreign model's vectors go through
};

// Reads a JSON object of arguments. Each getter throws ConfigError naming the parameter, its value
// and what is allowed. Python's None is JSON's null and means "absent".
class Params {
 public:
  // `config` must outlive this.
  explicit Params(const NetworkConfig& config);
  // `object` must outlive this. `name` is the architecture, for messages.
  Params(const nlohmann::json& object, std::string name);

  int64_t Positive(const std::string& key);
  int64_t Positive(const std::string& key, int64_t fallback);
  // Reads a number of layers, each of which costs memory before its tensors are even looked for.
  int64_t Depth(const std::string& key);
  int64_t Depth(const std::string& key, int64_t fallback);
  // Reads a number of heads that have tensors of their own.
  int64_t Heads(const std::string& key);
  int64_t Heads(const std::string& key, int64_t fallback);
  std::optional<int64_t> OptionalPositive(const std::string& key);
  int64_t NotNegative(const std::string& key, int64_t fallback);
  // Reads a number, whole or not, in [least, most].
  double Number(const std::string& key, double fallback, double least, double most);
  bool Flag(const std::string& key, bool fallback);
  // Reads a text that is one of `allowed`.
  std::string Choice(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& allowed);
  // Reads a list of texts, each of which is one of `allowed`, as long as a network has layers.
  std::vector<std::string> Choices(const std::string& key, const std::vector<std::string>& allowed);
  std::string Text(const std::string& key, const std::string& fallback);
  // Reads a list of integers of at least 0, or one integer alone; nullopt if absent.
  std::optional<std::vector<int64_t>> NotNegativeList(const std::string& key);
  // Reads a list of numbers in [least, most].
  std::vector<double> Numbers(const std::string& key, double least, double most);
  // Reads a list of texts that is an object by their numbers: {"0": "no", "1": "yes"}; nullopt if
  // absent.
  std::optional<std::vector<std::string>> NumberedTexts(const std::string& key, int64_t most);
  // Says whether the argument is a list.
  bool IsList(const std::string& key) const;
  // Says whether the argument is an object.
  bool IsObject(const std::string& key) const;
  // Reads an object of further arguments; nullptr if absent.
  Params* Object(const std::string& key);
  // Reads a Python namedtuple of these fields: an object, or the list that json.dumps() makes of
  // it.
  Params* NamedTuple(const std::string& key, const std::vector<std::string>& fields);

  // Returns the wrapper if it is of this type, else nullptr. Only a config has one.
  Params* Wrapper(const std::string& type);
  // Returns the forward arguments that are no tensors. Only a config has them.
  Params& Call() { return *call_; }

  // Accepts an argument that changes no number at inference (dropout), whatever it is.
  void Ignore(const std::string& key);
  // Refuses an argument that takes a tensor or module, which a configuration cannot hold.
  void RequireNone(const std::string& key, const std::string& why);

  // Accepts what nothing here asks for: more than the network's own arguments are given.
  void AcceptOthers() { foreign_ = true; }

  // Throws if a key (or wrapper) was asked for by none of the above; lists those that were. A
  // foreign config may have more keys.
  void RefuseUnknown() const;

  // Throws ConfigError with a text such as "linformer.Linformer: parameter \"dim\" is 30, expected
  // ...".
  [[noreturn]] void Fail(const std::string& key, const std::string& expected) const;

  bool Has(const std::string& key) const;
  // Says whether the argument is given, as Python's None.
  bool IsNone(const std::string& key) const;
  const std::string& name() const { return name_; }

 private:
  const nlohmann::json* Find(const std::string& key);
  int64_t UpTo(int64_t most, const std::string& key);
  Params* Child(const nlohmann::json& object, const std::string& name);

  const nlohmann::json& object_;
  std::string name_;
  std::string kind_ = "parameter";  // for messages
  std::set<std::string> known_;
  std::vector<std::unique_ptr<nlohmann::json>> named_tuples_;  // those given as lists
  std::vector<std::unique_ptr<Params>> children_;
  const nlohmann::json* wrapper_ = nullptr;
  std::set<std::string> wrapper_types_;
  bool wrapper_taken_ = false;
  bool foreign_ = false;
  std::unique_ptr<Params> call_;
};

}  // namespace linserve
