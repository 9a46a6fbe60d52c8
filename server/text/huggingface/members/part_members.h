#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linserve {

// Reads the members of one part of a tokenizer.json, an object with a `type`. What is wrong first
// is kept, so that one look at status() after all of them is enough.
class PartMembers {
 public:
  // `part` says in errors what it is of, such as "normalizer". The JSON must outlive it.
  PartMembers(const nlohmann::json& members, std::string part);

  const std::string& type() const { return type_; }
  const nlohmann::json& members() const { return json_; }

  // These return a member, or `otherwise` where it is missing or null; without one it must be
  // there.
  bool Bool(const std::string& name, std::optional<bool> otherwise = std::nullopt);
  std::string Text(const std::string& name,
                   const std::optional<std::string>& otherwise = std::nullopt);
  // Returns a text of one character; another one is a fault.
  std::string Character(const std::string& name);
  int64_t Integer(const std::string& name, int64_t least, int64_t most,
                  std::optional<int64_t> otherwise = std::nullopt);

  // Returns the array of parts in a member of a Sequence; null, and a fault, if it is none.
  const nlohmann::json* Parts(const std::string& name);

  // Says that the type, or what a member says, is not known here.
  absl::Status Unknown() const;
  absl::Status Fault(const std::string& what) const;
  void Expect(bool holds, const std::string& what);

  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const std::string& name, bool needed);

  const nlohmann::json& json_;
  const std::string part_;
  std::string type_;
  absl::Status status_;
};

// A Sequence has so many parts at most, those of Sequences in it included.
inline constexpr size_t kMostParts = 64;

// Adds to `parts` what `read` makes of a part or, of a Sequence, of those that its member
// `sequence` holds. `kind` says in errors what the part is of.
template <typename Part, typename Read>
absl::Status ReadParts(const nlohmann::json& part, const char* kind, const char* sequence,
                       const Read& read, std::vector<Part>& parts) {
  PartMembers members(part, kind);
  if (members.type() == "Sequence") {
    const nlohmann::json* const inner = members.Parts(sequence);
    if (inner == nullptr) return members.status();
    for (const nlohmann::json& one : *inner) {
      absl::Status status = ReadParts(one, kind, sequence, read, parts);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  auto one = read(members);
  if (!one.ok()) return members.status().ok() ? one.status() : members.status();
  members.Expect(parts.size() < kMostParts, "is one of more than " + std::to_string(kMostParts));
  parts.push_back(*std::move(one));
  return members.status();
}

}  // namespace linserve
