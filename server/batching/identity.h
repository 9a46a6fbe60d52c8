#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace linserve {

// Says what the result of a sequence depends on. It may have megabytes, so that its hash is made
// once, with it: whoever looks for equal ones does so under a lock.
class Identity {
 public:
  explicit Identity(std::string bytes)
      : bytes_(std::move(bytes)), hash_(std::hash<std::string>()(bytes_)) {}

  size_t size() const { return bytes_.size(); }
  size_t hash() const { return hash_; }

  // Compares all bytes: of two sequences that differ, neither may get the other's result.
  bool operator==(const Identity& other) const {
    return this == &other || (hash_ == other.hash_ && bytes_ == other.bytes_);
  }

 private:
  const std::string bytes_;
  const size_t hash_;
};

struct IdentityHash {
  size_t operator()(const std::shared_ptr<const Identity>& identity) const {
    return identity->hash();
  }
};

struct IdentityEqual {
  bool operator()(const std::shared_ptr<const Identity>& a,
                  const std::shared_ptr<const Identity>& b) const {
    return *a == *b;
  }
};

template <typename Value>
using ByIdentity =
    std::unordered_map<std::shared_ptr<const Identity>, Value, IdentityHash, IdentityEqual>;

}  // namespace linserve
