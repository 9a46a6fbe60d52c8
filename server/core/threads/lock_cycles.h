#pragma once

#include "absl/synchronization/mutex.h"

namespace linserve {

// Keeps Abseil, whose locks gRPC takes, from looking for cycles of locks each time that one is
// taken: Debian's is compiled so that it does. This concerns the whole process.
inline void OverlookLockCycles() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace linserve
