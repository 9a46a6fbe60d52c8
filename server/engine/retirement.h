#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <thread>

#include "core/mutex.h"
#include "engine/engine.h"

namespace linserve {

struct ServedModel;

// Ends models that nobody submits to any more, on a thread of its own: an engine's end waits until
// what it has accepted is answered, and its own workers may be the ones that let go of it last.
class Retirement {
 public:
  Retirement();
  // Waits for all of them.
  ~Retirement();
  Retirement(const Retirement&) = delete;
  Retirement& operator=(const Retirement&) = delete;

  // The model, which is retired when the last reference to it is gone. REQUIRES: that happens
  // before the retirement ends.
  std::shared_ptr<const ServedModel> Share(std::unique_ptr<ServedModel> model);

  // Like Engine::Drain, of those that are being retired.
  size_t Drain(TimePoint deadline);

 private:
  void Take(std::shared_ptr<const ServedModel> model);
  void Work();

  Mutex mutex_;
  CondVar changed_;
  std::list<std::shared_ptr<const ServedModel>> leaving_ LINSERVE_GUARDED_BY(mutex_);
  bool ended_ LINSERVE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace linserve
