#pragma once

#include "absl/status/status.h"
#include "batching/padder.h"
#include "engine/model.h"

namespace linserve {

// Runs the shortest sequence, one that fills a batch of `max_tokens` rows, and the longest one that
// the model takes: lazy initialisation and first allocations happen before the first request, and a
// model that cannot compute what it declares says so now.
absl::Status WarmUp(Model& model, const Padder& padder, int64_t max_tokens);

}  // namespace linserve
