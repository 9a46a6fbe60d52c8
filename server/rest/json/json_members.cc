#include "rest/json/json_members.h"

#include <algorithm>
#include <set>

#include "core/status/quote.h"

namespace linserve {

using Kind = JsonReader::Kind;

absl::Status ReadMembers(JsonReader& reader, std::initializer_list<JsonMember> members) {
  std::set<const JsonMember*> seen;
  return reader.Object([&](const std::string& key) -> absl::Status {
    const auto* const member = std::find_if(members.begin(), members.end(),
                                            [&](const JsonMember& one) { return one.name == key; });
    if (member == members.end()) return reader.Skip().status();
    if (seen.insert(member).second) return member->read();
    return absl::InvalidArgumentError(Quoted(key) + " is given more than once");
  });
}

absl::Status ReadBody(JsonReader& reader, std::initializer_list<JsonMember> members) {
  if (reader.End().ok()) {
    return absl::InvalidArgumentError("expected a JSON object; the body is empty");
  }
  absl::Status status = reader.Expect(Kind::kObject, "the body is not a JSON object");
  if (status.ok()) status = ReadMembers(reader, members);
  if (status.ok()) status = reader.End();
  return status;
}

absl::Status ReadText(JsonReader& reader, const std::string& name, std::string& text) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  absl::Status status = reader.Expect(Kind::kString, Quoted(name) + ": expected a string");
  return status.ok() ? Put(reader.String(), text) : status;
}

absl::Status ReadBool(JsonReader& reader, const std::string& name, bool& value) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  absl::Status status = reader.Expect(Kind::kBool, Quoted(name) + ": expected a bool");
  return status.ok() ? Put(reader.Bool(), value) : status;
}

}  // namespace linserve
