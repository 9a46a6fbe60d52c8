#include "rest/json/json_members.h"

#include <algorithm>
#include <set>

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

absl::Status ReadName(JsonReader& reader, const std::string& key, std::string& name) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  absl::Status status = reader.Expect(Kind::kString, Quoted(key) + ": expected a string");
  if (status.ok()) status = Put(reader.String(), name);
  return status.ok() ? CheckName(Quoted(key), name) : status;
}

absl::Status ReadBool(JsonReader& reader, const std::string& name, bool& value) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  absl::Status status = reader.Expect(Kind::kBool, Quoted(name) + ": expected a bool");
  return status.ok() ? Put(reader.Bool(), value) : status;
}

}  // namespace linserve
