#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/json/json_reader.h"

namespace linserve {

// Says how a member of an object is read.
struct JsonMember {
  std::string_view name;
  std::function<absl::Status()> read;
};

// Reads an object that comes next: each of these members once at most, INVALID_ARGUMENT if one is
// there again. What else is there is passed over, because clients send more than servers know.
absl::Status ReadMembers(JsonReader& reader, const std::vector<JsonMember>& members);

// Reads a whole body, which must be one object, in the same way.
absl::Status ReadBody(JsonReader& reader, const std::vector<JsonMember>& members);

// Puts what was read into its place, if it could be read.
template <typename From, typename To>
absl::Status Put(absl::StatusOr<From> read, To& place) {
  if (!read.ok()) return read.status();
  place = *std::move(read);
  return absl::OkStatus();
}

// Returns INVALID_ARGUMENT if an id or a name has more than kMaxIdBytes. `where` says whose it is.
absl::Status CheckName(const std::string& where, const std::string& name);

// Reads a text; INVALID_ARGUMENT with this message if something else comes next.
absl::Status ReadText(JsonReader& reader, const std::string& otherwise, std::string& text);

// These read the value of a member of this name: an id, a name or one of a few words, a bool, and
// an integer of at least 1. null leaves it as it is.
absl::Status ReadName(JsonReader& reader, const std::string& key, std::string& name);
absl::Status ReadBool(JsonReader& reader, const std::string& name, bool& value);
absl::Status ReadBool(JsonReader& reader, const std::string& name, std::optional<bool>& value);
absl::Status ReadPositive(JsonReader& reader, const std::string& name, int64_t& value);

}  // namespace linserve
