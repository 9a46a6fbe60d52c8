#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/sequence/batch.h"
#include "core/threads/clock.h"

namespace linserve {

// Bounds the sequences that are looked at for one batch.
inline constexpr int64_t kMostSequencesPerBatch = 2048;

// A pass that takes longer than this is long for those who come meanwhile.
inline constexpr std::chrono::milliseconds kLongPass(5);

// Says when a batch is closed. Its cost is the rows that it computes, padding included.
struct BatchPolicy {
  int64_t max_tokens = 16384;             // rows a batch; a longer sequence goes alone
  int64_t max_sequences = 256;            // sequences a batch
  std::chrono::nanoseconds max_delay{0};  // the longest a sequence waits for company while a
                                          // worker is free; 0: never wait
  int64_t long_rows = 512;                // a longer sequence whose pass is long goes alone, too
};

// Describes one waiting sequence, as the decision sees it.
struct Waiting {
  std::string_view key;  // only sequences of equal keys may share a batch
  int64_t rows = 0;      // rows that it adds to the batch
  TimePoint enqueued;
  bool alone = false;   // shares a batch with no other
  bool waited = false;  // for company, with what it goes on after: now it waits for none
};

// Says which sequences make a batch (indices into the view, ascending, the first sequence always
// among them), or that there is nothing to do before `wait_until` (nullopt: before the queue
// changes).
struct Decision {
  std::vector<size_t> take;
  CloseReason reason = CloseReason::kIdle;
  std::optional<TimePoint> wait_until;
};

// Decides what a free worker should do about the waiting sequences, in the order of their turns. It
// is a pure function. The first sequence starts the batch, so nothing starves; later ones that fit
// may overtake those that do not.
Decision Decide(const BatchPolicy& policy, const std::vector<Waiting>& view, TimePoint now,
                bool draining);

}  // namespace linserve
