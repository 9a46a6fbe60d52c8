#include "repository/retirement.h"

#include <exception>
#include <utility>
#include <vector>

#include "core/threads/guarded.h"
#include "repository/repository.h"

namespace linserve {
namespace {

int64_t WeightBytesOf(const ServedModel& model) { return model.engine->weight_bytes(); }

}  // namespace

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
  // All that the model's end needs is made now, because to let go of it must not fail.
  auto place = std::make_shared<Models>();
  place->emplace_back(std::move(model));
  const ServedModel* shared = place->front().get();
  weight_bytes_ += WeightBytesOf(*shared);
  return {shared, [this, place](const ServedModel*) { Take(*place); }};
}

void Retirement::Take(Models& model) {
  {
    MutexLock lock(mutex_);
    taken_.splice(taken_.end(), model);
    ++open_;
  }
  changed_.NotifyAll();
}

size_t Retirement::Drain(TimePoint deadline) {
  std::vector<std::shared_ptr<const ServedModel>> leaving;
  {
    MutexLock lock(mutex_);
    for (const Models* models : {&taken_, &leaving_}) {
      leaving.insert(leaving.end(), models->begin(), models->end());
    }
  }
  size_t given_up = 0;
  for (const auto& model : leaving) given_up += model->engine->Drain(deadline);
  return given_up;
}

void Retirement::AwaitEnd(TimePoint deadline) {
  MutexLock lock(mutex_);
  while (open_ > 0 && changed_.WaitUntil(lock, deadline)) {
  }
}

void Retirement::Work() {
  MutexLock lock(mutex_);
  while (!ended_ || open_ > 0) {
    if (taken_.empty()) {
      changed_.Wait(lock);
      continue;
    }
    const auto model = taken_.begin();
    leaving_.splice(leaving_.end(), taken_, model);
    lock.Unlock();
    try {
      // The thread is detached: it touches nothing after it has said that its model is no more.
      std::thread([this, model] { End(model); }).detach();
    } catch (const std::exception&) {
      End(model);  // the system has no thread left: others wait for this one
    }
    lock.Lock();
  }
}

// Waits until the model is idle, and ends it. It stays in the list until then, so that a drain can
// cut the wait short.
void Retirement::End(Models::iterator model) {
  RunGuarded("a retirement", [&] { (*model)->engine->Drain(TimePoint::max()); });
  Models last;
  {
    MutexLock lock(mutex_);
    last.splice(last.end(), leaving_, model);
  }
  const int64_t bytes = WeightBytesOf(*last.front());
  last.clear();
  weight_bytes_ -= bytes;
  MutexLock lock(mutex_);
  --open_;
  changed_.NotifyAll();
}

}  // namespace linserve
