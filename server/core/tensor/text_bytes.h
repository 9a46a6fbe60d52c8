#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace linserve {

// These functions pack texts as the raw contents of a BYTES tensor of the Open Inference Protocol:
// each text stands behind its length, 4 bytes, little-endian.

// Appends the text behind its length. REQUIRES: less than 4 GiB of text.
void AppendText(std::string_view text, std::string& raw);

// Returns views of the texts in `raw`. INVALID_ARGUMENT if `raw` ends before a text does, or holds
// more than `most` texts.
absl::StatusOr<std::vector<std::string_view>> TextsIn(std::string_view raw, size_t most);

}  // namespace linserve
