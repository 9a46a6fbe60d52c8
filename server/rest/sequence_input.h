#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/repository.h"
#include "inference/grpc_service.pb.h"

namespace linserve {

// The sequences of a call: texts, or token ids.
using Texts = std::vector<std::string>;
using IdSequences = std::vector<std::vector<int64_t>>;
using SequenceInput = std::variant<Texts, IdSequences>;

// What stands in `body` under `name`: "a text", ["texts"], [1, 2] or [[1, 2], [3]].
absl::StatusOr<SequenceInput> ReadSequences(const nlohmann::json& body, const char* name);

// Adds them to `message` as one batch of at most `most` bytes: texts as they are, ids padded to the
// longest. INVALID_ARGUMENT if the model does not take one such sequence.
absl::Status AddBatch(const ServedModel& model, const SequenceInput& sequences, int64_t most,
                      inference::ModelInferRequest& message);

}  // namespace linserve
