#include "engine/retirement.h"

#include <utility>
#include <vector>

#include "engine/repository.h"

namespace linserve {

Retirement::Retirement() : thread_([this] { Work(); }) {}

Retirement::~Retirement() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

std::shared_ptr<const ServedModel> Retirement::Share(std::unique_ptr<ServedModel> model) {
  return {model.release(),
          [this](const ServedModel* last) { Take(std::shared_ptr<const ServedModel>(last)); }};
}

void Retirement::Take(std::shared_ptr<const ServedModel> model) {
  {
    MutexLock lock(mutex_);
    leaving_.push_back(std::move(model));
  }
  changed_.NotifyAll();
}

size_t Retirement::Drain(TimePoint deadline) {
  std::vector<std::shared_ptr<const ServedModel>> leaving;
  {
    MutexLock lock(mutex_);
    leaving.assign(leaving_.begin(), leaving_.end());
  }
  size_t given_up = 0;
  for (const auto& model : leaving) given_up += model->engine->Drain(deadline);
  return given_up;
}

void Retirement::Work() {
  MutexLock lock(mutex_);
  while (!ended_ || !leaving_.empty()) {
    if (leaving_.empty()) {
      changed_.Wait(lock);
      continue;
    }
    // It stays in the list until it is idle, so that a drain can cut the wait short.
    const auto first = leaving_.begin();
    std::shared_ptr<const ServedModel> model = *first;
    lock.Unlock();
    model->engine->Drain(TimePoint::max());
    lock.Lock();
    leaving_.erase(first);
    lock.Unlock();
    model.reset();
    lock.Lock();
  }
}

}  // namespace linserve
