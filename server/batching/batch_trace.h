#pragma once

#include "absl/status/status.h"
#include "batching/request_queue.h"
#include "core/item.h"

namespace linserve {

// Puts a batch that was computed on the calling thread's track, and each of its sequences into a
// lane: how long it waited for the batch, and then with it. `ended`: when it was computed, or the
// pass ended with the status; a batch that is computed again in halves has them, too.
void TraceBatch(const ClosedBatch& closed, const Timing& timing, TimePoint ended,
                const absl::Status& status);

// Puts a sequence into a lane that left the queue now, and for no batch.
void TraceQueued(const Pending& pending, TimePoint now, const absl::Status& status);

}  // namespace linserve
