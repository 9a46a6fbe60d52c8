#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "engine/model.h"

namespace linserve {

constexpr int64_t kFakeLongest = 64;  // sequence that a fake model takes

enum class Fault : uint8_t {
  kNone,
  kStartFails,
  kStepFails,
  kBadAlloc,
  kThrows,
  kTooFewResults,
  kDeviceLost
};

// What all replicas of a fake model have in common: how they behave, and what they have done.
class FakeModelControl {
 public:
  // To be set before the first replica is loaded.
  int steps = 1;   // of a forward pass
  int slices = 1;  // of a step
  int64_t longest = kFakeLongest;
  bool request_is_unit = false;
  bool asynchronous = false;
  bool forgets = true;    // sequences that it is told to forget
  bool sessions = false;  // has them
  // Why a replica cannot be made; OK while it can.
  std::function<absl::Status()> load = [] { return absl::OkStatus(); };
  std::function<Fault(const Batch& batch)> fault = [](const Batch&) { return Fault::kNone; };

  std::function<void()> on_step = [] {};

  // Every forward pass stops in each of its steps until it is let go.
  void Hold();
  void LetGo();
  // Returns once so many forward passes stand in a step.
  void AwaitHeld(int count);

  std::vector<int64_t> batch_sizes() const;
  // "start" and "take" (of results) as they came.
  std::vector<std::string> events() const;
  std::set<std::thread::id> threads() const;  // on which replicas were made, run and destroyed
  int steps_done() const { return steps_done_; }
  int alive() const { return alive_; }
  int forwards() const { return forwards_; }  // alive

 private:
  friend class FakeModel;
  friend class FakeForward;

  void Started(const Batch& batch);
  void Taken();
  void Step();
  void OnThisThread();

  mutable Mutex mutex_;
  CondVar changed_;
  bool hold_ LINSERVE_GUARDED_BY(mutex_) = false;
  int held_ LINSERVE_GUARDED_BY(mutex_) = 0;
  std::vector<int64_t> batch_sizes_ LINSERVE_GUARDED_BY(mutex_);
  std::vector<std::string> events_ LINSERVE_GUARDED_BY(mutex_);
  std::set<std::thread::id> threads_ LINSERVE_GUARDED_BY(mutex_);
  std::atomic<int> steps_done_ = 0;
  std::atomic<int> alive_ = 0;
  std::atomic<int> forwards_ = 0;
};

// The bytes of a session's state.
constexpr int64_t kFakeSessionBytes = 1 << 20;

// Takes x [n, 2], n <= kFakeLongest; gives y [n, 2], where y = 2 x + index of the row in its
// sequence. A session after n rows is saved as "fake n".
ModelFactory FakeModelFactory(std::shared_ptr<FakeModelControl> control);

// A sequence of `length` rows, all elements `value`, and the y that becomes of it.
Item FakeItem(int64_t length, float value = 1);
std::vector<float> FakeResult(int64_t length, float value = 1);

}  // namespace linserve
