#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/json/json_reader.h"
#include "serving/requests/embeddings_request.h"

namespace linserve {

// Reads the value of `name`: "a text", ["texts"], [1, 2] or [[1, 2], [3]]. INVALID_ARGUMENT if it
// is none of these, or as soon as it holds more than `most` sequences.
absl::Status ReadSequences(JsonReader& reader, const std::string& name, int64_t most,
                           SequenceInput& sequences);

// Refuses a list that holds more than `most` sequences.
absl::Status TooManySequences(int64_t most);

}  // namespace linserve
