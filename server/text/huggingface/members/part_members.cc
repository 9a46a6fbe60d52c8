#include "text/huggingface/members/part_members.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/strings/quote.h"
#include "core/strings/utf8.h"
#include "text/huggingface/characters/characters.h"

namespace linserve {

using nlohmann::json;

PartMembers::PartMembers(const json& members, std::string part)
    : json_(members), part_(std::move(part)) {
  type_ = Text("type", "");
}

const json* PartMembers::Find(const std::string& name, bool needed) {
  const auto found = json_.is_object() ? json_.find(name) : json_.end();
  if (found != json_.end() && !found->is_null()) return &*found;
  Expect(!needed, "has no '" + name + "'");
  return nullptr;
}

bool PartMembers::Bool(const std::string& name, std::optional<bool> otherwise) {
  const json* const value = Find(name, !otherwise.has_value());
  if (value == nullptr) return otherwise.value_or(false);
  Expect(value->is_boolean(), "has a '" + name + "' that is no bool");
  return value->is_boolean() && value->get<bool>();
}

std::string PartMembers::Text(const std::string& name,
                              const std::optional<std::string>& otherwise) {
  constexpr size_t kLongest = 4 << 20;  // a charsmap has some 300 KB
  const json* const value = Find(name, !otherwise.has_value());
  if (value == nullptr) return otherwise.value_or("");
  Expect(value->is_string(), "has a '" + name + "' that is no text");
  if (!value->is_string()) return "";
  const auto& text = value->get_ref<const std::string&>();
  Expect(text.size() <= kLongest, "has a '" + name + "' of " + std::to_string(text.size()) +
                                      " bytes, expected at most " + std::to_string(kLongest));
  return text.size() <= kLongest ? text : "";
}

int64_t PartMembers::Integer(const std::string& name, int64_t least, int64_t most,
                             std::optional<int64_t> otherwise) {
  const json* const value = Find(name, !otherwise.has_value());
  if (value == nullptr) return otherwise.value_or(least);
  const bool in_range =
      value->is_number_integer() &&
      (!value->is_number_unsigned() || value->get<uint64_t>() <= static_cast<uint64_t>(most)) &&
      value->get<int64_t>() >= least && value->get<int64_t>() <= most;
  Expect(in_range, "has a '" + name + "' that is no integer from " + std::to_string(least) +
                       " to " + std::to_string(most));
  return in_range ? value->get<int64_t>() : least;
}

std::string PartMembers::Character(const std::string& name) {
  std::string text = Text(name);
  const bool one = CountCharacters(text) == 1;
  Expect(one, "has a '" + name + "' that is not one character");
  return one ? text : " ";
}

const json* PartMembers::Parts(const std::string& name) {
  const json* const value = Find(name, true);
  if (value == nullptr) return nullptr;
  Expect(
      value->is_array() && value->size() <= kMostParts,
      "has '" + name + "' that are no array of at most " + std::to_string(kMostParts) + " parts");
  return status_.ok() ? value : nullptr;
}

absl::Status PartMembers::Unknown() const {
  if (!status_.ok()) return status_;
  return absl::InvalidArgumentError("its " + part_ + " " + Quoted(type_) +
                                    " is not known here: see server/text/README.md for what is");
}

absl::Status PartMembers::Fault(const std::string& what) const {
  return absl::InvalidArgumentError("its " + part_ + " " + Quoted(type_) + " " + what);
}

void PartMembers::Expect(bool holds, const std::string& what) {
  if (!holds && status_.ok()) status_ = Fault(what);
}

}  // namespace linserve
