#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace linserve {

// Texts as the raw contents of a BYTES tensor of the Open Inference Protocol: each behind its
// length, 4 bytes, little-endian.

// REQUIRES: less than 4 GiB of text.
void AppendText(std::string_view text, std::string& raw);

// Views of `raw`. INVALID_ARGUMENT if a text ends before its length.
absl::StatusOr<std::vector<std::string_view>> TextsIn(std::string_view raw);

}  // namespace linserve
