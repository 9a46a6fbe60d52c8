#pragma once

#include "absl/status/status.h"
#include "batching/padder.h"
#include "engine/model.h"

namespace linserve {

// Runs the shortest sequence and the longest one that the model takes (at most `max_tokens` rows),
// so that lazy initialisation and first allocations happen before the first request.
absl::Status WarmUp(Model& model, const Padder& padder, int64_t max_tokens);

}  // namespace linserve
