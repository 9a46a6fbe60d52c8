#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/batch.h"
#include "core/sequence/signature.h"
#include "engine/sessions/session_source.h"

namespace linserve {

// Names the output of a classifier, which scores its labels.
inline constexpr const char* kLogits = "logits";

// Names the first output of a model of sparse embeddings, a weight of each word of its vocabulary.
inline constexpr const char* kSparseEmbedding = "sparse_embedding";

// Says what the scores are of: one label of all is right, or each may be by itself, or they are
// values that were measured. So does `problem_type` of the package `transformers`.
enum class ProblemType : uint8_t { kSingleLabel, kMultiLabel, kRegression };

// Holds what is known of a model once it is loaded: plain values, equal for all its replicas.
struct ModelInfo {
  std::string architecture;  // "linformer.LinformerLM"
  Signature signature;
  std::string device;         // "cpu", "cuda:0"
  DType dtype = DType::kF32;  // type that it computes in
  int64_t parameters = 0;     // counted as PyTorch counts them
  int64_t bytes = 0;          // bytes of the weights in memory
  int64_t layers = 1;         // steps of a forward pass
  // Is the padding that it computes fastest with on its device.
  Padding padding = Padding::kPacked;
  // Names the classes that the output `logits` scores, in order; null: the model is no classifier.
  std::shared_ptr<const std::vector<std::string>> labels{};
  ProblemType problem_type = ProblemType::kSingleLabel;
  int64_t session_bytes = 0;  // bytes of a session's state; 0: there are none
  std::string no_sessions;    // why there are no sessions, in words for a user; else empty
  std::shared_ptr<const SessionSource> sessions;  // null: there are none, or it is not loaded
  // Tells models apart that compute different numbers. It depends on architecture, arguments, dtype
  // and weights.
  std::string fingerprint;
};

// Computes one forward pass over one batch, in steps so that between them a worker can look up.
class Forward {
 public:
  virtual ~Forward() = default;

  // Called within a long step, with the rows that went through its layer since the last call, and
  // now and then while long results are made. Returns false if nobody wants this pass any more.
  using Between = std::function<bool(int64_t rows)>;

  // Computes one step (a layer). Returns true when the pass is complete. INTERNAL means that the
  // pass failed; RESOURCE_EXHAUSTED that the device has no memory left; UNAVAILABLE that it is
  // lost; CANCELLED that `between` ended it. A device that is only asked to compute does not call
  // `between`.
  virtual absl::StatusOr<bool> Advance(const Between& between) = 0;
  absl::StatusOr<bool> Advance() {
    return Advance([](int64_t /*rows*/) { return true; });
  }

  // Called when nobody waits for this sequence of the batch any more. Returns true if what is left
  // to compute for it is left out; its result is then empty.
  virtual bool Forget(size_t /*sequence*/) { return false; }

  // Holds, for each sequence of the batch, its outputs or the fault that is its alone.
  using Results = std::vector<absl::StatusOr<TensorMap>>;

  // Returns the outputs of each sequence, cropped to its own lengths, pooled and converted as its
  // options ask. OUT_OF_RANGE in the place of a sequence means that its outputs are not finite; its
  // session is as it was. CANCELLED of all means that `between` ended it. REQUIRES: Advance()
  // returned true. Call it once.
  virtual absl::StatusOr<Results> TakeResults(const Between& between) = 0;
  absl::StatusOr<Results> TakeResults() {
    return TakeResults([](int64_t /*rows*/) { return true; });
  }
};

// Represents one replica of a model. It is loaded, warmed, run and destroyed on one thread, and
// needs no locks.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;

  // Returns whether Advance() only asks a device to compute, and TakeResults() waits for it: then
  // another batch can be started in between.
  virtual bool asynchronous() const { return false; }

  // Returns whether its device has failed so that it will compute nothing any more.
  virtual bool lost() const { return false; }

  // Returns what allocates the inputs of its batches where it likes them to lie; empty if they may
  // lie anywhere on the host. The model only reads them.
  virtual TensorAllocator allocator() const { return {}; }

  // Does what would cost the first batches time, so that they need not wait for it. Called once,
  // before Start().
  virtual absl::Status Prepare() { return absl::OkStatus(); }

  // Returns a session as bytes, of which SessionSource::Restore() makes it again for any replica of
  // the same model, weights and dtype. REQUIRES: a session of this model whose last chunk was
  // computed by this replica, with no chunk in flight.
  virtual absl::StatusOr<std::string> Save(const SessionState& /*session*/) {
    return absl::UnimplementedError(info().architecture +
                                    " has no sessions: " + info().no_sessions);
  }

  // Begins the pass of a batch. The sessions of the batch are as they were until the pass gives its
  // results: one that fails or is given up can be repeated. Returns INVALID_ARGUMENT if a session's
  // chunk does not pass ValidateChunk(), or if the session is of another model or is in the batch
  // twice. REQUIRES: a batch that the Padder made of items valid for info().signature.
  virtual absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) = 0;
};

// Makes one replica, on the thread that will run it; replicas are counted from 0.
using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>(int64_t replica)>;

}  // namespace linserve
