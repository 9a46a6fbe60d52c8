#include "rest/json/json_members.h"

#include <algorithm>
#include <set>

#include "core/json/json_number.h"
#include "core/strings/quote.h"
#include "serving/request_context.h"

namespace linserve {

using Kind = JsonReader::Kind;

absl::Status ReadMembers(JsonReader& reader, const std::vector<JsonMember>& members) {
  std::set<const JsonMember*> seen;
  return reader.Object([&](const std::string& key) -> absl::Status {
    const auto member = std::find_if(members.begin(), members.end(),
                                     [&](const JsonMember& one) { return one.name == key; });
    if (member == members.end()) return reader.Skip().status();
    if (seen.insert(&*member).second) return member->read();
    return absl::InvalidArgumentError(Quoted(key) + " is given more than once");
  });
}

absl::Status ReadBody(JsonReader& reader, const std::vector<JsonMember>& members) {
  if (reader.End().ok()) {
    return absl::InvalidArgumentError("expected a JSON object; the body is empty");
  }
  absl::Status status = reader.Expect(Kind::kObject, "the body is not a JSON object");
  if (status.ok()) status = ReadMembers(reader, members);
  if (status.ok()) status = reader.End();
  return status;
}

absl::Status CheckName(const std::string& where, const std::string& name) {
  if (name.size() <= kMaxIdBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(where + " has " + std::to_string(name.size()) +
                                    " bytes, expected at most " + std::to_string(kMaxIdBytes));
}

absl::Status ReadText(JsonReader& reader, const std::string& otherwise, std::string& text) {
  absl::Status status = reader.Expect(Kind::kString, otherwise);
  return status.ok() ? Put(reader.String(), text) : status;
}

absl::Status ReadName(JsonReader& reader, const std::string& key, std::string& name) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  absl::Status status = ReadText(reader, Quoted(key) + ": expected a string", name);
  return status.ok() ? CheckName(Quoted(key), name) : status;
}

absl::Status ReadBool(JsonReader& reader, const std::string& name, bool& value) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  absl::Status status = reader.Expect(Kind::kBool, Quoted(name) + ": expected a bool");
  return status.ok() ? Put(reader.Bool(), value) : status;
}

absl::Status ReadBool(JsonReader& reader, const std::string& name, std::optional<bool>& value) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  return ReadBool(reader, name, value.emplace());
}

absl::Status ReadPositive(JsonReader& reader, const std::string& name, int64_t& value) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  const auto text = reader.Skip();
  if (!text.ok()) return text.status();
  value = IntegerOf<int64_t>(*text).value_or(0);
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(Quoted(name) + ": expected an integer of at least 1");
}

}  // namespace linserve
