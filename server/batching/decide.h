#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "batching/clock.h"
#include "core/batch.h"

namespace linserve {

// More are never looked at for one batch.
inline constexpr int64_t kMostSequencesPerBatch = 2048;

// When a batch is closed. Its cost is the rows that it computes, padding included.
struct BatchPolicy {
  int64_t max_tokens = 16384;             // rows a batch; a longer sequence goes alone
  int64_t max_sequences = 256;            // sequences a batch
  std::chrono::nanoseconds max_delay{0};  // the longest a sequence waits for company while a
                                          // worker is free; 0: never wait
};

// One waiting sequence, as the decision sees it.
struct Waiting {
  std::string_view key;  // only sequences of equal keys may share a batch
  int64_t rows = 0;      // that it adds to the batch
  TimePoint enqueued;
  bool unit = false;  // all of its key are taken together, whatever the budget
};

// Either a batch (indices into the view, ascending, the first sequence always among them), or
// nothing to do before `wait_until` (nullopt: before the queue changes).
struct Decision {
  std::vector<size_t> take;
  CloseReason reason = CloseReason::kIdle;
  std::optional<TimePoint> wait_until;
};

// A pure function: what a free worker should do about the waiting sequences, in the order of their
// turns. The first one starts the batch, so nothing starves; later ones that fit may overtake those
// that do not.
Decision Decide(const BatchPolicy& policy, const std::vector<Waiting>& view, TimePoint now,
                bool draining);

}  // namespace linserve
