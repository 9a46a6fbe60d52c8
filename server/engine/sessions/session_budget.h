#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/threads/mutex.h"

namespace linserve {

class SessionTable;

// Says whether it is a caller's sessions that may be evicted; empty: anybody's.
using Whose = std::function<bool(const std::string& caller)>;

// Returns the most that any caller has.
int64_t MostOf(const std::map<std::string, int64_t>& by_caller);
// Says who has the most of what is counted by callers, which must outlive the result.
Whose HasTheMost(const std::map<std::string, int64_t>& by_caller);

// Says whether there was room for a session: in what all may take, and in its caller's share.
enum class SessionRoom : uint8_t { kTaken, kShareFull, kFull };

// Bounds the bytes that the sessions of all models take together, and each caller's share of them.
// Thread-safe.
class SessionBudget {
 public:
  // With `per_caller` 0 a caller may have half of all.
  explicit SessionBudget(int64_t most, int64_t per_caller = 0)
      : most_(most), per_caller_(per_caller > 0 ? per_caller : most / 2) {}

  // Takes room for a session of this caller, if there is any.
  SessionRoom Take(const std::string& caller, int64_t bytes);
  void Give(const std::string& caller, int64_t bytes);

  int64_t most() const { return most_; }
  // Returns how many bytes one caller may have at most.
  int64_t MostOfACaller() const { return std::min(most_, per_caller_); }

  // Adds a table from which sessions may be evicted for those of others.
  void Join(std::weak_ptr<SessionTable> table);
  // Evicts the sessions of any table that were not used for longest, until there is room for one of
  // this caller, if that is what its share allows: its own where that is used up, else of those who
  // have the most. REQUIRES: the calling thread is in no table.
  void MakeRoom(const std::string& caller, int64_t bytes);

 private:
  // Evicts one; false if all of these callers are being computed.
  bool EvictOldest(const Whose& whose) ABSL_EXCLUSIVE_LOCKS_REQUIRED(evicting_);
  int64_t BytesOf(const std::string& caller);
  int64_t Most();
  SessionRoom RoomFor(const std::string& caller, int64_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t most_;
  const int64_t per_caller_;

  Mutex evicting_;  // is taken before the lock of a table, and `mutex_` after it
  std::vector<std::weak_ptr<SessionTable>> tables_ ABSL_GUARDED_BY(evicting_);
  Mutex mutex_;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> callers_ ABSL_GUARDED_BY(mutex_);  // bytes of those that have any
};

}  // namespace linserve
