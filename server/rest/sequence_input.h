#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "rest/json/json_reader.h"

namespace linserve {

// Holds the sequences of a call: texts, or token ids.
using Texts = std::vector<std::string>;
using IdSequences = std::vector<std::vector<int64_t>>;
using SequenceInput = std::variant<Texts, IdSequences>;

// Reads the value of `name`: "a text", ["texts"], [1, 2] or [[1, 2], [3]]. INVALID_ARGUMENT if it
// is none of these, or as soon as it holds more than `most` sequences.
absl::Status ReadSequences(JsonReader& reader, const std::string& name, int64_t most,
                           SequenceInput& sequences);

}  // namespace linserve
