#pragma once

#include "absl/status/status.h"
#include "batching/decide.h"
#include "batching/padder.h"
#include "core/threads/clock.h"
#include "engine/model.h"
#include "engine/speed_estimate.h"

namespace linserve {

// Runs the shortest sequence, the fullest batch of the longest ones, and the longest sequence that
// the model takes, each for five seconds at most. If that is longer than 65,536 rows, so many are
// run, once there is memory for all. Thus lazy initialisation and first allocations happen before
// the first request, and a model that cannot compute what it declares says so now. `speed` learns
// from the fullest batch, so that what the first few rows take is not taken for the speed of many.
absl::Status WarmUp(Model& model, const Padder& padder, const BatchPolicy& policy,
                    const Clock& clock, SpeedEstimate& speed);

}  // namespace linserve
