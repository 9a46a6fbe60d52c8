#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

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

// Parts may be nested so deep, and a sequence has so many at most.
inline constexpr size_t kMostParts = 64;

}  // namespace linserve
