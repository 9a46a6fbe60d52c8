#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace linserve {

inline constexpr size_t kSha256Bytes = 32;

// Returns the hash of the bytes, kSha256Bytes of them.
std::string Sha256(std::string_view bytes);

}  // namespace linserve
