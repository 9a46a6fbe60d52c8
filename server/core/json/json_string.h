#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace linserve {

// A byte of text is up to so many of a JSON string.
inline constexpr int64_t kJsonOfTextByte = 6;

// Returns the characters of a JSON string from its text without the quotes, which begins at byte
// `offset` of what errors call `name`. INVALID_ARGUMENT names the byte where it is no JSON, or not
// UTF-8. That includes half of a pair of surrogates: what would be put in its place is not what was
// sent.
absl::StatusOr<std::string> Unescaped(std::string_view raw, size_t offset,
                                      std::string_view name = "the body");

}  // namespace linserve
