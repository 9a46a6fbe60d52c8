#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <thread>

#include "core/threads/mutex.h"
#include "engine/engine.h"

namespace linserve {

struct ServedModel;

// Ends models that nobody submits to any more, each on a thread of its own: an engine's end waits
// until what it has accepted is answered, which may take long, and its own workers may be the ones
// that let go of it last.
class Retirement {
 public:
  Retirement();
  // Waits until all models have ended.
  ~Retirement();
  Retirement(const Retirement&) = delete;
  Retirement& operator=(const Retirement&) = delete;

  // Shares a model, which is retired when the last reference to it is gone. REQUIRES: that happens
  // before the retirement ends.
  std::shared_ptr<const ServedModel> Share(std::unique_ptr<ServedModel> model);

  // Drains the models that are being retired, as Engine::Drain() does one.
  size_t Drain(TimePoint deadline);

  // Waits until all models that were let go of have ended, or until the deadline.
  void AwaitEnd(TimePoint deadline);

  // Returns the bytes of the weights of all models that were shared and have not ended.
  int64_t weight_bytes() const { return weight_bytes_; }

 private:
  using Models = std::list<std::shared_ptr<const ServedModel>>;

  void Take(Models& model);
  void Work();
  void End(Models::iterator model);

  Mutex mutex_;
  CondVar changed_;
  Models taken_ ABSL_GUARDED_BY(mutex_);      // nothing was done about these yet
  Models leaving_ ABSL_GUARDED_BY(mutex_);    // each has a thread that waits for it
  int64_t open_ ABSL_GUARDED_BY(mutex_) = 0;  // those that have not ended
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int64_t> weight_bytes_ = 0;
  std::thread thread_;  // starts the others
};

}  // namespace linserve
