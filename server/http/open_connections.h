#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/files/descriptor.h"
#include "core/threads/clock.h"
#include "core/threads/mutex.h"

namespace linserve {

// Knows the open connections: it waits in one thread for all that wait for their callers, tells who
// has hung up on us, and hangs up on all. Thread-safe.
class OpenConnections {
 public:
  // Is called when a wait ends, with whether that for which it was has come in time. It has to be
  // quick, and must not call this. Of a wait for a request it is destroyed, uncalled, when no waits
  // are wanted any more.
  using Wake = std::function<void(bool in_time)>;

  // Says what a connection waits for.
  enum class For : uint8_t {
    kRequest,  // nothing of one has come
    kHead,     // the rest of a request's head
    kAnswer,   // that there is room for more of the last answer
    kEnd,      // what the caller still sends, and nobody wants
  };
  struct Wait {
    For what;
    short events;  // POLLIN or POLLOUT
    TimePoint deadline;
    Wake wake;
  };

  OpenConnections();
  ~OpenConnections();
  OpenConnections(const OpenConnections&) = delete;
  OpenConnections& operator=(const OpenConnections&) = delete;

  // Is a connection, for as long as it is one of those that are open.
  class Entry {
   public:
    Entry(OpenConnections& owner, int descriptor);
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry();

    // Turns true when the other side sends no more, or is gone.
    std::shared_ptr<const std::atomic<bool>> left() const { return left_; }

    // Begins a wait. REQUIRES: none is under way.
    void Begin(Wait wait) { owner_.Begin(id_, std::move(wait)); }

   private:
    OpenConnections& owner_;
    const std::shared_ptr<std::atomic<bool>> left_ = std::make_shared<std::atomic<bool>>(false);
    const uint64_t id_;
  };

  // Ends, as one that was too long, the wait of this kind that would have to end first: of callers
  // who send or read, that of the slowest. Returns false if there is none.
  bool EndLongestWait(For what);

  // Ends all waits, and lets none begin from now on. Who waits for no request is woken.
  void EndWaits();

  void HangUp();

 private:
  struct Open {
    int descriptor;
    std::shared_ptr<std::atomic<bool>> left;
    std::optional<Wait> wait{};
  };

  uint64_t Add(Open connection);
  void Remove(uint64_t id);
  void Begin(uint64_t id, Wait wait);
  // Takes the connection's wait and wakes it. What is returned must be destroyed without the mutex:
  // it may hold the last of the connection.
  std::optional<Wait> End(uint64_t id, bool in_time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notice(uint64_t id, uint32_t events);
  // Ends the waits that are over, and returns how many milliseconds there are to the next; -1: no
  // other is under way.
  int EndLateWaits();
  void Watch();

  const Descriptor events_;   // of epoll
  const Descriptor changed_;  // an event that wakes the thread
  Mutex mutex_;
  // Numbers are never used again. A descriptor may be, before the last event of its former
  // connection was seen.
  std::map<uint64_t, Open> open_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<TimePoint, uint64_t>> deadlines_ ABSL_GUARDED_BY(mutex_);  // of the waits
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool waits_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> ended_ = false;
  std::thread watch_;
};

}  // namespace linserve
