#include "core/options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/nearest.h"

namespace linserve {
namespace {

using nlohmann::json;

// As JSON. Flags and variables may hold any bytes; what is not UTF-8 is shown as U+FFFD.
std::string Shown(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// "16384" for whole numbers, "0.5" for others.
std::string Shown(double value) {
  return std::floor(value) == value && std::abs(value) < 1e18
             ? std::to_string(static_cast<int64_t>(value))
             : Shown(json(value));
}

bool InRange(const json& value, double least, double most) {
  return value.is_number() && value.get<double>() >= least && value.get<double>() <= most;
}

bool IsIntegerInRange(const json& value, double least, double most) {
  // JSON's numbers from 2^63 on are integers, too, but not of int64; as a double, 2^63 is what the
  // largest int64 is.
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (value.is_number_unsigned() && value.get<uint64_t>() > kMost) return false;
  return value.is_number_integer() && InRange(value, least, most);
}

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;  // clang 14 does not deduce it

}  // namespace

void OptionTable::Integer(std::string name, int64_t& field, int64_t least, int64_t most,
                          std::string help) {
  options_.push_back({std::move(name),
                      &field,
                      static_cast<double>(least),
                      static_cast<double>(most),
                      {},
                      std::move(help)});
}

void OptionTable::Integers(std::string name, std::vector<int64_t>& field, int64_t least,
                           int64_t most, std::string help) {
  options_.push_back({std::move(name),
                      &field,
                      static_cast<double>(least),
                      static_cast<double>(most),
                      {},
                      std::move(help)});
}

void OptionTable::Number(std::string name, double& field, double least, double most,
                         std::string help) {
  options_.push_back({std::move(name), &field, least, most, {}, std::move(help)});
}

void OptionTable::Flag(std::string name, bool& field, std::string help) {
  options_.push_back({std::move(name), &field, 0, 0, {}, std::move(help)});
}

void OptionTable::Text(std::string name, std::string& field, std::string help) {
  options_.push_back({std::move(name), &field, 0, 0, {}, std::move(help)});
}

void OptionTable::Choice(std::string name, std::string& field, std::vector<std::string> allowed,
                         std::string help) {
  options_.push_back({std::move(name), &field, 0, 0, std::move(allowed), std::move(help)});
}

std::vector<OptionTable::Description> OptionTable::Describe() const {
  std::vector<Description> all;
  for (const Option& option : options_) {
    const json current = std::visit([](const auto* field) { return json(*field); }, option.field);
    const bool is_flag = std::holds_alternative<bool*>(option.field);
    const bool is_text = std::holds_alternative<std::string*>(option.field);
    const bool bounded = !is_text || !option.allowed.empty();
    all.push_back({option.name, option.help + (bounded ? " (" + Allowed(option) + ")" : ""),
                   Shown(current), is_flag});
  }
  return all;
}

absl::Status OptionTable::Set(const std::string& name, const json& value,
                              const std::string& where) {
  const Option* option = Find(name);
  if (option == nullptr) return Unknown(name, where);
  if (Assign(*option, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(where + ": \"" + name + "\" is " + Shown(value) +
                                    ", expected " + Allowed(*option));
}

absl::Status OptionTable::SetText(const std::string& name, const std::string& text,
                                  const std::string& where) {
  const Option* option = Find(name);
  if (option == nullptr) return Unknown(name, where);
  if (std::holds_alternative<std::string*>(option->field)) return Set(name, json(text), where);
  const bool list = std::holds_alternative<std::vector<int64_t>*>(option->field);
  const std::string as_json = list && !text.starts_with("[") ? "[" + text + "]" : text;
  json value = json::parse(as_json, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) value = text;
  return Set(name, value, where);
}

absl::Status OptionTable::SetAll(const json& object, const std::string& where) {
  if (!object.is_object()) {
    return absl::InvalidArgumentError(where + ": expected a JSON object of options");
  }
  for (const auto& [name, value] : object.items()) {
    if (absl::Status status = Set(name, value, where); !status.ok()) return status;
  }
  return absl::OkStatus();
}

const OptionTable::Option* OptionTable::Find(const std::string& name) const {
  const auto found = std::find_if(options_.begin(), options_.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

std::string OptionTable::Allowed(const Option& option) {
  const std::string range = Shown(option.least) + " to " + Shown(option.most);
  return std::visit(Overloaded{[&](const int64_t*) { return "an integer from " + range; },
                               [&](const std::vector<int64_t>*) {
                                 return "an ascending list of integers from " + range;
                               },
                               [&](const double*) { return "a number from " + range; },
                               [](const bool*) { return std::string("true or false"); },
                               [&](const std::string*) {
                                 if (option.allowed.empty()) return std::string("a text");
                                 std::string text = "one of";
                                 for (const std::string& value : option.allowed)
                                   text += " " + value;
                                 return text;
                               }},
                    option.field);
}

bool OptionTable::Assign(const Option& option, const json& value) {
  return std::visit(
      Overloaded{[&](int64_t* field) {
                   if (!IsIntegerInRange(value, option.least, option.most)) return false;
                   *field = value.get<int64_t>();
                   return true;
                 },
                 [&](std::vector<int64_t>* field) {
                   const auto fits = [&](const json& entry) {
                     return IsIntegerInRange(entry, option.least, option.most);
                   };
                   if (!value.is_array() || !std::all_of(value.begin(), value.end(), fits) ||
                       !std::is_sorted(value.begin(), value.end())) {
                     return false;
                   }
                   *field = value.get<std::vector<int64_t>>();
                   return true;
                 },
                 [&](double* field) {
                   if (!InRange(value, option.least, option.most)) return false;
                   *field = value.get<double>();
                   return true;
                 },
                 [&](bool* field) {
                   if (!value.is_boolean()) return false;
                   *field = value.get<bool>();
                   return true;
                 },
                 [&](std::string* field) {
                   const auto& allowed = option.allowed;
                   if (!value.is_string() ||
                       (!allowed.empty() && std::find(allowed.begin(), allowed.end(),
                                                      value.get<std::string>()) == allowed.end())) {
                     return false;
                   }
                   *field = value.get<std::string>();
                   return true;
                 }},
      option.field);
}

std::string OptionTable::NearestTo(const std::string& name, size_t most_changes) const {
  std::vector<std::string> names;
  for (const Option& option : options_) names.push_back(option.name);
  return NearestName(name, names, most_changes);
}

absl::Status OptionTable::Unknown(const std::string& name, const std::string& where) const {
  const std::string nearest = NearestTo(name);
  const std::string hint = nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
  return absl::InvalidArgumentError(where + ": unknown option \"" + name + "\"" + hint);
}

}  // namespace linserve
