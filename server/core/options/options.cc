#include "core/options/options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/json/json_text.h"
#include "core/options/units.h"
#include "core/strings/nearest.h"
#include "core/system/memory.h"

namespace linserve {
namespace {

using nlohmann::json;

// Writes a value as JSON. Flags and variables may hold any bytes; what is not UTF-8 is shown as
// U+FFFD.
std::string Shown(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Writes "16384" for whole numbers, "0.5" for others.
std::string Shown(double value) {
  return std::floor(value) == value && std::abs(value) < 1e18
             ? std::to_string(static_cast<int64_t>(value))
             : Shown(json(value));
}

// Writes an option's value.
std::string ShownValue(const json& value) {
  return value.is_number_float() ? Shown(value.get<double>()) : Shown(value);
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

// Returns what a text such as "4GiB" stands for, in this unit; any other value as it is.
json WithoutUnit(const json& value, std::optional<double> (*parse)(std::string_view), double unit) {
  if (!value.is_string()) return value;
  const std::optional<double> parsed = parse(value.get<std::string>());
  return parsed ? json(*parsed / unit) : value;
}

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;  // clang 14 does not deduce this

}  // namespace

void OptionTable::Add(Option option) {
  option.section = std::exchange(section_, "");
  options_.push_back(std::move(option));
}

void OptionTable::Section(std::string title) { section_ = std::move(title); }

void OptionTable::Live() { options_.back().live = true; }

void OptionTable::Integer(std::string name, int64_t& field, int64_t least, int64_t most,
                          std::string help) {
  Add({std::move(name),
       &field,
       static_cast<double>(least),
       static_cast<double>(most),
       {},
       std::move(help)});
}

void OptionTable::Integers(std::string name, std::vector<int64_t>& field, int64_t least,
                           int64_t most, std::string help) {
  Add({std::move(name),
       &field,
       static_cast<double>(least),
       static_cast<double>(most),
       {},
       std::move(help)});
}

void OptionTable::Bytes(std::string name, int64_t& field, int64_t least, int64_t most,
                        std::string help) {
  Add({std::move(name),
       Size{&field},
       static_cast<double>(least),
       static_cast<double>(most),
       {},
       std::move(help)});
}

void OptionTable::Number(std::string name, double& field, double least, double most,
                         std::string help) {
  Add({std::move(name), &field, least, most, {}, std::move(help)});
}

void OptionTable::Flag(std::string name, bool& field, std::string help) {
  Add({std::move(name), &field, 0, 0, {}, std::move(help)});
}

void OptionTable::Text(std::string name, std::string& field, std::string help) {
  Add({std::move(name), &field, 0, 0, {}, std::move(help)});
}

void OptionTable::Texts(std::string name, std::map<std::string, std::string>& field,
                        std::string help) {
  Add({std::move(name), &field, 0, 0, {}, std::move(help)});
}

void OptionTable::Choice(std::string name, std::string& field, std::vector<std::string> allowed,
                         std::string help) {
  Add({std::move(name), &field, 0, 0, std::move(allowed), std::move(help)});
}

void OptionTable::Chosen(const std::string& name, const std::vector<std::string>& names,
                         const std::string& help, const std::function<void(size_t)>& set,
                         const std::function<size_t()>& get) {
  const auto assign = [names, set](const std::string& text) {
    const auto place = std::find(names.begin(), names.end(), text);
    set(static_cast<size_t>(place - names.begin()));
    return absl::OkStatus();
  };
  Add({name, ParsedText{assign, [names, get] { return names[get()]; }}, 0, 0, names, help});
}

void OptionTable::Duration(std::string name, std::chrono::nanoseconds& field, double least,
                           double most, std::string help) {
  const double unit = name.ends_with("_ms") ? 1e6 : 1e9;
  Add({std::move(name), Time{&field, unit}, least, most, {}, std::move(help)});
}

void OptionTable::Parsed(std::string name, SetParsed set, GetParsed get, std::string help) {
  Add({std::move(name), ParsedText{std::move(set), std::move(get)}, 0, 0, {}, std::move(help)});
}

json OptionTable::Current(const Option& option) {
  return std::visit(Overloaded{[](const Time& time) {
                                 return json(static_cast<double>(time.field->count()) / time.unit);
                               },
                               [](const Size& size) { return json(*size.field); },
                               [](const ParsedText& parsed) { return json(parsed.get()); },
                               [](const auto* field) { return json(*field); }},
                    option.field);
}

std::string OptionTable::ShownSize(const Option& option) {
  const Size* size = std::get_if<Size>(&option.field);
  return size == nullptr || *size->field == 0 ? "" : FormatBytes(static_cast<double>(*size->field));
}

std::vector<OptionTable::Description> OptionTable::Describe() const {
  std::vector<Description> all;
  for (const Option& option : options_) {
    const json current = Current(option);
    const bool bounded = !current.is_string() || !option.allowed.empty();
    all.push_back({.name = option.name,
                   .help = option.help,
                   .allowed = bounded ? Allowed(option) : "",
                   .choice = !option.allowed.empty(),
                   .current = ShownValue(current),
                   .size = ShownSize(option),
                   .is_flag = std::holds_alternative<bool*>(option.field),
                   .live = option.live,
                   .section = option.section,
                   .origin = option.origin,
                   .overridden_origin = option.overridden_origin,
                   .overridden = option.overridden});
  }
  return all;
}

absl::Status OptionTable::Set(const std::string& name, const json& value,
                              const std::string& where) {
  Option* option = Find(name);
  if (option == nullptr) return Unknown(name, where);
  const json before = Current(*option);
  absl::Status status = Assign(*option, value);
  if (status.ok()) {
    if (!option->origin.empty() && Current(*option) != before) {
      option->overridden_origin = option->origin;
      option->overridden = ShownValue(before);
    }
    option->origin = where;
    return status;
  }
  constexpr size_t kLongest = 200;  // what is shown of a value that is wrong
  std::string shown = Shown(value);
  if (shown.size() > kLongest) shown = shown.substr(0, kLongest) + "...";
  return absl::InvalidArgumentError(where + ": \"" + name + "\" is " + shown + ", " +
                                    std::string(status.message()));
}

absl::Status OptionTable::SetText(const std::string& name, const std::string& text,
                                  const std::string& where) {
  const Option* option = Find(name);
  if (option == nullptr) return Unknown(name, where);
  if (Current(*option).is_string()) return Set(name, json(text), where);
  const bool list = std::holds_alternative<std::vector<int64_t>*>(option->field);
  const std::string as_json = list && !text.starts_with("[") ? "[" + text + "]" : text;
  const auto value = ParseJson(as_json);
  return Set(name, value.ok() ? *value : json(text), where);
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

std::vector<OptionTable::Change> OptionTable::Adopt(const OptionTable& fresh) {
  std::vector<Change> changes;
  for (size_t i = 0; i < options_.size(); ++i) {
    Option& option = options_[i];
    const Option& wanted = fresh.options_[i];
    const json before = Current(option);
    const json after = Current(wanted);
    if (before != after) {
      const bool taken = option.live && Set(option.name, after, wanted.origin).ok();
      changes.push_back({option.name, ShownValue(before), ShownValue(after), taken});
    }
    option.overridden_origin = wanted.overridden_origin;
    option.overridden = wanted.overridden;
  }
  return changes;
}

OptionTable::Option* OptionTable::Find(const std::string& name) {
  const auto found = std::find_if(options_.begin(), options_.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

std::string OptionTable::Allowed(const Option& option) {
  const std::string range = Shown(option.least) + " to " + Shown(option.most);
  const auto text = [&option] {
    if (option.allowed.empty()) return std::string("a text");
    std::string all = "one of";
    for (const std::string& value : option.allowed) all += " " + value;
    return all;
  };
  return std::visit(
      Overloaded{
          [&](const int64_t*) { return "an integer from " + range; },
          [&](const std::vector<int64_t>*) {
            return "an ascending list of integers from " + range;
          },
          [&](const double*) { return "a number from " + range; },
          [&](const Time&) { return "a number from " + range + ", or a time such as \"30s\""; },
          [&](const Size&) { return "an integer from " + range + ", or a size such as \"4GiB\""; },
          [](const bool*) { return std::string("true or false"); },
          [&](const std::string*) { return text(); },
          [](const std::map<std::string, std::string>*) {
            return std::string("an object of texts");
          },
          [&](const ParsedText&) { return text(); }},
      option.field);
}

absl::Status OptionTable::Assign(const Option& option, const json& value) {
  const auto is_allowed = [&] {
    return value.is_string() &&
           (option.allowed.empty() || std::find(option.allowed.begin(), option.allowed.end(),
                                                value.get<std::string>()) != option.allowed.end());
  };
  const auto fits = [&](const json& entry) {
    return IsIntegerInRange(entry, option.least, option.most);
  };
  const auto in_range = [&] { return InRange(value, option.least, option.most); };
  const auto wrong = [&] { return absl::InvalidArgumentError("expected " + Allowed(option)); };
  // Takes the value if it fits.
  const auto take = [&](bool good, auto* field) -> absl::Status {
    if (!good) return wrong();
    *field = value.get<std::remove_pointer_t<decltype(field)>>();
    return absl::OkStatus();
  };
  return std::visit(
      Overloaded{[&](int64_t* field) { return take(fits(value), field); },
                 [&](std::vector<int64_t>* field) {
                   return take(value.is_array() && std::all_of(value.begin(), value.end(), fits) &&
                                   std::is_sorted(value.begin(), value.end()),
                               field);
                 },
                 [&](double* field) { return take(in_range(), field); },
                 [&](bool* field) { return take(value.is_boolean(), field); },
                 [&](std::string* field) { return take(is_allowed(), field); },
                 [&](std::map<std::string, std::string>* field) {
                   const auto is_text = [](const json& entry) { return entry.is_string(); };
                   return take(
                       value.is_object() && std::all_of(value.begin(), value.end(), is_text),
                       field);
                 },
                 [&](const Time& time) -> absl::Status {
                   const json number = WithoutUnit(value, ParseTime, time.unit);
                   if (!InRange(number, option.least, option.most)) return wrong();
                   *time.field = std::chrono::nanoseconds(
                       static_cast<int64_t>(std::llround(number.get<double>() * time.unit)));
                   return absl::OkStatus();
                 },
                 [&](const Size& size) -> absl::Status {
                   if (!value.is_string()) return take(fits(value), size.field);
                   const json bytes = WithoutUnit(value, ParseSize, 1);
                   if (!InRange(bytes, option.least, option.most)) return wrong();
                   *size.field = std::llround(bytes.get<double>());
                   return absl::OkStatus();
                 },
                 [&](const ParsedText& parsed) {
                   return is_allowed() ? parsed.set(value.get<std::string>()) : wrong();
                 }},
      option.field);
}

absl::Status OptionTable::Unknown(const std::string& name, const std::string& where) const {
  constexpr size_t kLongest = 64;  // no option's name is as long
  const std::string cut = name.substr(0, kLongest);
  std::vector<std::string> names;
  for (const Option& option : options_) names.push_back(option.name);
  const std::string nearest = NearestName(cut, names, cut.size() / 2);
  const std::string hint = nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
  return absl::InvalidArgumentError(where + ": unknown option \"" + cut + "\"" + hint);
}

}  // namespace linserve
