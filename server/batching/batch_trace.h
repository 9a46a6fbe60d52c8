#pragma once

#include "absl/status/status.h"
#include "batching/request_queue.h"
#include "core/sequence/item.h"

namespace linserve {

// Puts a computed batch on the calling thread's track, and each of its sequences into a lane: how
// long it waited for the batch, and then with it. `ended` is when the batch was computed, or when
// the pass ended with the status. A batch that is computed again in halves is traced, too.
void TraceBatch(const ClosedBatch& closed, const Timing& timing, TimePoint ended,
                const absl::Status& status);

// Puts into a lane a sequence that left the queue now without being computed.
void TraceQueued(const Pending& pending, TimePoint now, const absl::Status& status);

}  // namespace linserve
