#include "models/config/params.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/strings/utf8.h"
#include "models/config/config_error.h"

namespace linserve {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;  // products of two sizes stay within int64
constexpr int64_t kMostLayers = 4096;
constexpr int64_t kMostHeads = 1024;

template <typename Names>
std::string Listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// A file may hold a megabyte of it.
std::string Shown(const nlohmann::json& value) {
  constexpr size_t kLongest = 200;
  const std::string text = value.dump();
  const std::string_view shown = CutAtCharacter(text, kLongest);
  return std::string(shown) + (shown.size() < text.size() ? "..." : "");
}

bool IsBetween(const nlohmann::json& value, int64_t least) {
  return value.is_number_integer() && value.get<int64_t>() >= least &&
         value.get<int64_t>() <= kLargestSize;
}

}  // namespace

Params::Params(const NetworkConfig& config) : Params(config.params, config.architecture) {
  if (!config.wrapper.is_null()) wrapper_ = &config.wrapper;
  foreign_ = config.foreign;
  call_ = std::make_unique<Params>(config.call, name_);
  call_->kind_ = "call argument";
}

Params::Params(const nlohmann::json& object, std::string name)
    : object_(object), name_(std::move(name)) {
  if (!object_.is_object()) throw ConfigError(name_ + ": \"params\" must be a JSON object");
}

bool Params::Has(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

bool Params::IsNone(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

const nlohmann::json* Params::Find(const std::string& key) {
  known_.insert(key);
  return Has(key) ? &object_[key] : nullptr;
}

int64_t Params::Positive(const std::string& key) {
  if (auto value = OptionalPositive(key)) return *value;
  std::set<std::string> given;
  for (const auto& [name, value] : object_.items()) given.insert(name);
  Fail(key, "a positive integer; it is required, and given are: " + Listed(given));
}

int64_t Params::Positive(const std::string& key, int64_t fallback) {
  return OptionalPositive(key).value_or(fallback);
}

int64_t Params::UpTo(int64_t most, const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return Positive(key);
  if (!IsBetween(*value, 1) || value->get<int64_t>() > most) {
    Fail(key, "an integer from 1 to " + std::to_string(most));
  }
  return value->get<int64_t>();
}

int64_t Params::Depth(const std::string& key) { return UpTo(kMostLayers, key); }

int64_t Params::Depth(const std::string& key, int64_t fallback) {
  return Find(key) == nullptr ? fallback : Depth(key);
}

int64_t Params::Heads(const std::string& key) { return UpTo(kMostHeads, key); }

int64_t Params::Heads(const std::string& key, int64_t fallback) {
  return Find(key) == nullptr ? fallback : Heads(key);
}

std::optional<int64_t> Params::OptionalPositive(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!IsBetween(*value, 1)) Fail(key, "a positive integer up to " + std::to_string(kLargestSize));
  return value->get<int64_t>();
}

int64_t Params::NotNegative(const std::string& key, int64_t fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!IsBetween(*value, 0)) Fail(key, "an integer from 0 to " + std::to_string(kLargestSize));
  return value->get<int64_t>();
}

double Params::Number(const std::string& key, double fallback, double least, double most) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= least && number <= most)) {
    std::ostringstream range;
    range << "a number from " << least << " to " << most;
    Fail(key, range.str());
  }
  return number;
}

bool Params::Flag(const std::string& key, bool fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) Fail(key, "true or false");
  return value->get<bool>();
}

std::string Params::Choice(const std::string& key, const std::string& fallback,
                           const std::vector<std::string>& allowed) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string() ||
      std::find(allowed.begin(), allowed.end(), value->get<std::string>()) == allowed.end()) {
    Fail(key, "one of " + Listed(allowed));
  }
  return value->get<std::string>();
}

std::vector<std::string> Params::Choices(const std::string& key,
                                         const std::vector<std::string>& allowed) {
  const nlohmann::json* value = Find(key);
  const std::string expected = "a list of at most " + std::to_string(kMostLayers) +
                               ", each of them one of " + Listed(allowed);
  if (value == nullptr || !value->is_array() || std::ssize(*value) > kMostLayers) {
    Fail(key, expected);
  }
  std::vector<std::string> list;
  for (const nlohmann::json& entry : *value) {
    if (!entry.is_string() ||
        std::find(allowed.begin(), allowed.end(), entry.get<std::string>()) == allowed.end()) {
      Fail(key, expected);
    }
    list.push_back(entry.get<std::string>());
  }
  return list;
}

std::string Params::Text(const std::string& key, const std::string& fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) Fail(key, "a string");
  return value->get<std::string>();
}

std::optional<std::vector<int64_t>> Params::NotNegativeList(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> list;
  for (const nlohmann::json& entry : value->is_array() ? *value : nlohmann::json::array({*value})) {
    if (!IsBetween(entry, 0)) Fail(key, "an integer of at least 0, or a list of such");
    if (std::ssize(list) == kMostLayers) {
      Fail(key, "at most " + std::to_string(kMostLayers) + " integers, one a layer");
    }
    list.push_back(entry.get<int64_t>());
  }
  return list;
}

std::vector<double> Params::Numbers(const std::string& key, double least, double most) {
  constexpr int64_t kMostNumbers = 1 << 16;
  const nlohmann::json* value = Find(key);
  std::vector<double> list;
  if (value == nullptr || !value->is_array()) Fail(key, "a list of numbers");
  for (const nlohmann::json& entry : *value) {
    const bool fits = entry.is_number() && entry >= least && entry <= most;
    if (!fits || std::ssize(list) == kMostNumbers) {
      std::ostringstream range;
      range << "a list of at most " << kMostNumbers << " numbers from " << least << " to " << most;
      Fail(key, range.str());
    }
    list.push_back(entry.get<double>());
  }
  return list;
}

std::optional<std::vector<std::string>> Params::NumberedTexts(const std::string& key,
                                                              int64_t most) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::string expected = "an object of 1 to " + std::to_string(most) +
                               " texts by their numbers, such as {\"0\": \"no\", \"1\": \"yes\"}";
  if (!value->is_object() || value->empty() || std::ssize(*value) > most) Fail(key, expected);
  std::vector<std::string> texts;
  for (size_t i = 0; i < value->size(); ++i) {
    const auto text = value->find(std::to_string(i));
    const bool is_text = text != value->end() && text->is_string();
    // Some name classes by numbers.
    if (!is_text && (text == value->end() || !text->is_number_integer())) Fail(key, expected);
    texts.push_back(is_text ? text->get<std::string>() : text->dump());
  }
  return texts;
}

bool Params::IsList(const std::string& key) const { return Has(key) && object_[key].is_array(); }

bool Params::IsObject(const std::string& key) const { return Has(key) && object_[key].is_object(); }

Params* Params::Object(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) Fail(key, "an object of arguments");
  return Child(*value, name_ + " " + key);
}

Params* Params::NamedTuple(const std::string& key, const std::vector<std::string>& fields) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return Child(*value, name_ + " " + key);
  if (!value->is_array() || value->size() != fields.size()) {
    std::string example;
    for (const std::string& field : fields) {
      example += (example.empty() ? "{\"" : ", \"") + field + "\": 256";
    }
    Fail(key, "an object such as " + example + "}, or its " + std::to_string(fields.size()) +
                  (fields.size() == 1 ? " value" : " values") + " as a list");
  }
  auto named = std::make_unique<nlohmann::json>(nlohmann::json::object());
  for (size_t i = 0; i < fields.size(); ++i) (*named)[fields[i]] = (*value)[i];
  named_tuples_.push_back(std::move(named));
  return Child(*named_tuples_.back(), name_ + " " + key);
}

Params* Params::Child(const nlohmann::json& object, const std::string& name) {
  children_.push_back(std::make_unique<Params>(object, name));
  return children_.back().get();
}

Params* Params::Wrapper(const std::string& type) {
  wrapper_types_.insert(type);
  if (wrapper_ == nullptr || !wrapper_->is_object()) return nullptr;
  const auto given = wrapper_->find("type");
  if (given == wrapper_->end() || *given != type) return nullptr;
  wrapper_taken_ = true;
  Params* child = Child(*wrapper_, name_ + " wrapper " + type);
  child->Ignore("type");
  return child;
}

void Params::Ignore(const std::string& key) { Find(key); }

void Params::RequireNone(const std::string& key, const std::string& why) {
  if (Find(key) != nullptr) Fail(key, "null or nothing: " + why);
}

void Params::RefuseUnknown() const {
  if (foreign_) return;
  for (const auto& [key, value] : object_.items()) {
    if (known_.contains(key)) continue;
    throw ConfigError(name_ + ": unknown " + kind_ + " \"" + key + "\"; it takes " +
                      Listed(known_));
  }
  if (wrapper_ != nullptr && !wrapper_taken_) {
    const std::string given = name_ + ": \"wrapper\" is " + Shown(*wrapper_);
    if (wrapper_types_.empty()) throw ConfigError(given + ", but it takes no wrapper");
    throw ConfigError(given + ", expected an object whose \"type\" is one of " +
                      Listed(wrapper_types_));
  }
  if (call_) call_->RefuseUnknown();
  for (const auto& child : children_) child->RefuseUnknown();
}

void Params::Fail(const std::string& key, const std::string& expected) const {
  const auto found = object_.find(key);
  const std::string value = found == object_.end() ? "missing" : Shown(*found);
  throw ConfigError(name_ + ": " + kind_ + " \"" + key + "\" is " + value + ", expected " +
                    expected);
}

}  // namespace linserve
