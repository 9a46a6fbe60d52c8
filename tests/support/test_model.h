#pragma once

#include <cstdint>
#include <memory>

#include "core/mutex.h"
#include "engine/model.h"

namespace linserve {

// By which a test holds up the forward passes of a test model, makes them fail, and asks what was
// computed. Thread-safe.
class ModelControl {
 public:
  // From now on a pass waits before it computes, until Allow() or Release().
  void Block();
  void Allow(int64_t passes);
  void Release();

  // Passes compute in steps without an end, until Release().
  void ComputeWithoutEnd();

  // The next passes end with this status.
  void FailNext(absl::Status status, int passes = 1);

  // Waits until so many passes have begun; false if they have not within a minute.
  bool WaitForStarted(int64_t passes);

  // Sequences of the passes that came to their end.
  int64_t computed() const;

  // For the model.
  void Started();
  absl::StatusOr<bool> Step(int64_t sequences);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool blocked_ LINSERVE_GUARDED_BY(mutex_) = false;
  bool endless_ LINSERVE_GUARDED_BY(mutex_) = false;
  int64_t allowed_ LINSERVE_GUARDED_BY(mutex_) = 0;
  int64_t started_ LINSERVE_GUARDED_BY(mutex_) = 0;
  int64_t computed_ LINSERVE_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ LINSERVE_GUARDED_BY(mutex_);
  int failing_ LINSERVE_GUARDED_BY(mutex_) = 0;  // passes
};

constexpr int64_t kTestVocabulary = 100;
constexpr int64_t kTestLongest = 20000;

// x [n] of token ids below kTestVocabulary, n up to kTestLongest; y [n, 4] is (id, place, n, 1) and
// z [n, 2] (place, id).
ModelFactory TokenModel(std::shared_ptr<ModelControl> control);

// x [n, 3] and, if wanted, context [m, 3]; y [n, 3] is x plus the sum of the context's rows.
ModelFactory FloatModel(std::shared_ptr<ModelControl> control);

}  // namespace linserve
