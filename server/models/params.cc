#include "models/params.h"

#include <utility>

#include "models/config_error.h"

namespace linserve {

Params::Params(const nlohmann::json& object, std::string name)
    : object_(object), name_(std::move(name)) {
  if (!object_.is_object()) throw ConfigError(name_ + ": \"params\" must be a JSON object");
}

const nlohmann::json* Params::Find(const std::string& key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

int64_t Params::Positive(const std::string& key) {
  if (auto value = OptionalPositive(key)) return *value;
  std::string given;
  for (const auto& [name, value] : object_.items()) given += (given.empty() ? "" : ", ") + name;
  Fail(key, "a positive integer; the constructor requires it, and got " +
                (given.empty() ? "no arguments" : given));
}

int64_t Params::Positive(const std::string& key, int64_t fallback) {
  return OptionalPositive(key).value_or(fallback);
}

int64_t Params::Depth(const std::string& key) {
  constexpr int64_t kMost = 4096;
  const int64_t depth = Positive(key);
  if (depth > kMost) Fail(key, "at most " + std::to_string(kMost) + " layers");
  return depth;
}

std::optional<int64_t> Params::OptionalPositive(const std::string& key) {
  constexpr int64_t kMost = int64_t{1} << 31;  // products of two sizes stay within int64
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() || value->get<int64_t>() < 1 || value->get<int64_t>() > kMost) {
    Fail(key, "a positive integer up to " + std::to_string(kMost));
  }
  return value->get<int64_t>();
}

bool Params::Flag(const std::string& key, bool fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) Fail(key, "true or false");
  return value->get<bool>();
}

void Params::Ignore(const std::string& key) { Find(key); }

void Params::RefuseUnknown() const {
  for (const auto& [key, value] : object_.items()) {
    if (known_.contains(key)) continue;
    std::string all;
    for (const std::string& name : known_) all += (all.empty() ? "" : ", ") + name;
    throw ConfigError(name_ + ": unknown parameter \"" + key + "\"; it takes " + all);
  }
}

void Params::Fail(const std::string& key, const std::string& expected) const {
  const auto found = object_.find(key);
  const std::string value = found == object_.end() ? "missing" : found->dump();
  throw ConfigError(name_ + ": parameter \"" + key + "\" is " + value + ", expected " + expected);
}

}  // namespace linserve
