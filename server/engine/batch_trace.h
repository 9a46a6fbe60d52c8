#pragma once

#include "batching/request_queue.h"
#include "core/item.h"

namespace linserve {

// Puts a batch that was computed on the calling thread's track, and each of its sequences into a
// lane: how long it waited for the batch, and then with it. `ended`: when it was computed.
void TraceBatch(const ClosedBatch& closed, const Timing& timing, TimePoint ended);

}  // namespace linserve
