#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>

#include "core/files/descriptor.h"
#include "core/threads/mutex.h"

namespace linserve {

// Knows the open connections: it tells who has hung up on us, and hangs up on all. Thread-safe.
class OpenConnections {
 public:
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

   private:
    OpenConnections& owner_;
    const std::shared_ptr<std::atomic<bool>> left_ = std::make_shared<std::atomic<bool>>(false);
    const uint64_t id_;
  };

  void HangUp();

 private:
  struct Open {
    int descriptor;
    std::shared_ptr<std::atomic<bool>> left;
  };

  uint64_t Add(const Open& connection);
  void Remove(uint64_t id);
  void Watch();

  const Descriptor events_;  // of epoll
  const Descriptor end_;     // an event that ends the thread
  Mutex mutex_;
  // Numbers are never used again. A descriptor may be, before the last event of its former
  // connection was seen.
  std::map<uint64_t, Open> open_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread watch_;
};

}  // namespace linserve
