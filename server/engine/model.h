#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/batch.h"
#include "core/signature.h"

namespace linserve {

// Makes the sessions of a model. Thread-safe, and outlives the model.
class SessionSource {
 public:
  virtual ~SessionSource() = default;

  // A session that has read nothing yet. RESOURCE_EXHAUSTED: there is no memory for it.
  virtual absl::StatusOr<std::shared_ptr<SessionState>> New() const = 0;

  // One that goes on where Model::Save() was called, maybe of another replica of the same model.
  // INVALID_ARGUMENT if the bytes were altered or cut, or are of another version or another model.
  virtual absl::StatusOr<std::shared_ptr<SessionState>> Restore(std::string_view blob) const = 0;
};

// What is known of a model once it is loaded: plain values, the same for all its replicas.
struct ModelInfo {
  std::string architecture;  // "linformer.LinformerLM"
  Signature signature;
  std::string device;                             // "cpu", "cuda:0"
  DType dtype = DType::kF32;                      // that it computes in
  int64_t parameters = 0;                         // counted as PyTorch counts them
  int64_t bytes = 0;                              // of the weights in memory
  int64_t layers = 1;                             // steps of a forward pass
  int64_t session_bytes = 0;                      // of a session's state; 0: there are none
  std::string no_sessions;                        // why, in words for a user; empty if there are
  std::shared_ptr<const SessionSource> sessions;  // null: there are none, or it is not loaded
  // What tells models apart that compute different numbers: of architecture, arguments, dtype and
  // weights.
  std::string fingerprint;
};

// One forward pass over one batch, taken in steps so that between them a worker can look up.
class Forward {
 public:
  virtual ~Forward() = default;

  // Called within a long step, with the rows that are through its layer since the last call. Meant
  // for other passes of the same model. False: nobody wants this one any more.
  using Between = std::function<bool(int64_t rows)>;

  // Computes at least one step (a layer) and goes on until about `budget` rows have passed through
  // a layer. True when the pass is complete. INTERNAL if the pass failed; RESOURCE_EXHAUSTED if the
  // device has no memory left; UNAVAILABLE if it is lost; CANCELLED if `between` ended it. A device
  // that is only asked to compute does not call `between`.
  virtual absl::StatusOr<bool> Advance(int64_t budget, const Between& between) = 0;
  absl::StatusOr<bool> Advance(int64_t budget) {
    return Advance(budget, [](int64_t /*rows*/) { return true; });
  }

  // Nobody waits for this sequence of the batch any more. True if what is left to compute for it is
  // left out; its result is then empty.
  virtual bool Forget(size_t /*sequence*/) { return false; }

  // The outputs of each sequence, cropped to its own lengths, pooled and converted as its options
  // ask. REQUIRES: Advance() returned true. Call once.
  virtual absl::StatusOr<std::vector<TensorMap>> TakeResults() = 0;
};

// One replica of a model. Loaded, warmed, run and destroyed on one thread; needs no locks.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;

  // Whether Advance() only asks a device to compute, and TakeResults() waits for it: then another
  // batch can be started in between.
  virtual bool asynchronous() const { return false; }

  // Whether its device has failed so that it will compute nothing any more.
  virtual bool lost() const { return false; }

  // Where it likes the inputs of its batches to lie; empty: anywhere on the host. It only reads
  // them.
  virtual TensorAllocator allocator() const { return {}; }

  // Does what would cost the first batches time, so that they need not wait for it. Called once,
  // before Start().
  virtual absl::Status Prepare() { return absl::OkStatus(); }

  // A session as bytes that any replica of the same model, weights and dtype makes it of again
  // (SessionSource). REQUIRES: a session of this model whose last chunk was computed by this
  // replica, with no chunk in flight.
  virtual absl::StatusOr<std::string> Save(const SessionState& /*session*/) {
    return absl::UnimplementedError(info().architecture +
                                    " has no sessions: " + info().no_sessions);
  }

  // The sessions of a batch are as they were until its pass gives its results: one that fails or is
  // given up can be repeated. INVALID_ARGUMENT if a session's chunk does not pass ValidateChunk(),
  // if the session is of another model, or is in the batch twice.
  // REQUIRES: a batch that the Padder made of items valid for info().signature.
  virtual absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) = 0;
};

// Makes one replica, on the thread that will run it; replicas are counted from 0.
using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>(int64_t replica)>;

}  // namespace linserve
