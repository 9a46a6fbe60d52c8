#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/threads/mutex.h"
#include "engine/model.h"

namespace linserve {

constexpr int64_t kFakeLongest = 64;  // longest sequence that a fake model takes

enum class Fault : uint8_t {
  kNone,
  kStartFails,
  kStepFails,
  kBadAlloc,
  kThrows,
  kTooFewResults,
  kDeviceLost
};

// Holds what all replicas of a fake model have in common: how they behave, and what they have done.
// Thread-safe, but for what is to be set before the first replica is loaded.
class FakeModelControl {
 public:
  int steps = 1;   // steps of a forward pass
  int slices = 1;  // slices of a step
  int shares = 0;  // shares of results, after each of which a pass looks up
  int64_t longest = kFakeLongest;
  bool request_is_unit = false;
  bool asynchronous = false;
  bool forgets = true;             // it drops sequences that it is told to forget
  bool sessions = false;           // it has sessions
  std::atomic<bool> saves = true;  // and saves them
  std::shared_ptr<const std::vector<std::string>> labels;  // of a classifier
  ProblemType problem_type = ProblemType::kSingleLabel;
  // Says why a replica cannot be made; OK while it can.
  std::function<absl::Status()> load = [] { return absl::OkStatus(); };
  std::function<Fault(const Batch& batch)> fault = [](const Batch&) { return Fault::kNone; };

  std::function<void()> on_step = [] {};
  std::function<void(const Batch& batch)> before_slice = [](const Batch&) {};
  std::function<void()> on_share = [] {};    // of results
  std::function<void()> on_failure = [] {};  // once a pass was given up or has failed

  // Makes every forward pass stop in each of its steps until it is let go, but for so many steps as
  // are allowed meanwhile.
  void Hold();
  void Allow(int64_t steps);
  void LetGo();
  // Returns once so many forward passes stand in a step.
  void AwaitHeld(int count);
  // Waits until so many forward passes have begun; false if they have not within a minute.
  bool WaitForStarted(size_t passes);

  // Makes passes take steps without an end, until LetGo().
  void ComputeWithoutEnd();
  // Makes the next passes end with this status.
  void FailNext(absl::Status status, int passes = 1);

  std::vector<int64_t> batch_sizes() const;
  // Returns "start" and "take" (of results) as they came.
  std::vector<std::string> events() const;
  std::set<std::thread::id> threads() const;  // where replicas were made, run and destroyed
  int steps_done() const { return steps_done_; }
  int alive() const { return alive_; }
  int forwards() const { return forwards_; }      // alive
  int64_t computed() const { return computed_; }  // sequences, of passes that came to their end

 private:
  friend class FakeModel;
  friend class FakeForward;

  void Started(const Batch& batch);
  void Taken();
  void Step();
  // Says whether a pass that took its last step is at its end, or the status that it fails with.
  absl::StatusOr<bool> Finish(int64_t sequences);
  void OnThisThread();

  mutable Mutex mutex_;
  CondVar changed_;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;  // steps
  bool endless_ ABSL_GUARDED_BY(mutex_) = false;
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  int failing_ ABSL_GUARDED_BY(mutex_) = 0;  // passes
  std::vector<int64_t> batch_sizes_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  std::set<std::thread::id> threads_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> steps_done_ = 0;
  std::atomic<int> alive_ = 0;
  std::atomic<int> forwards_ = 0;
  std::atomic<int64_t> computed_ = 0;
};

// Holds rows of `width` values one after the other. Vectors of vectors would take most of the time
// of tests with sanitizers.
struct FakeRows {
  size_t width;
  std::vector<float> values;

  size_t count() const { return values.size() / width; }
};

// Returns the outputs of sequence `index` of a batch by name.
using FakeOutputs = std::map<std::string, FakeRows>;
using FakeCompute = std::function<FakeOutputs(const Batch& batch, size_t index)>;

// Returns the rows [n, width] of an input of floats that is laid out by the letter.
FakeRows RowsOf(const Batch& batch, const std::string& input, char letter, size_t index);

// Makes a model that gives what `compute` says, pooled and normalized as a request asks.
ModelFactory FakeModelFactory(const std::string& architecture, const Signature& signature,
                              const FakeCompute& compute,
                              const std::shared_ptr<FakeModelControl>& control);

// A replica's weights have so many bytes.
constexpr int64_t kFakeModelBytes = 1234;
// A session's state has so many bytes.
constexpr int64_t kFakeSessionBytes = 1 << 20;

// Makes models that take x [n, 2], n <= kFakeLongest, and give y [n, 2], where y = 2 x + index of
// the row in its sequence. A session after n rows is saved as "fake n".
ModelFactory FakeModelFactory(const std::shared_ptr<FakeModelControl>& control);

// FakeItem() is a sequence of `length` rows, all elements `value`; FakeResult() is the y that
// becomes of it.
Item FakeItem(int64_t length, float value = 1);
std::vector<float> FakeResult(int64_t length, float value = 1);

}  // namespace linserve
