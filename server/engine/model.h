#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/batch.h"
#include "core/signature.h"

namespace linserve {

// What is known of a model once it is loaded: plain values, the same for all its replicas.
struct ModelInfo {
  std::string architecture;  // "linformer.LinformerLM"
  Signature signature;
  std::string device;         // "cpu", "cuda:0"
  DType dtype = DType::kF32;  // that it computes in
  int64_t parameters = 0;     // counted as PyTorch counts them
  int64_t bytes = 0;          // of the weights in memory
};

// One forward pass over one batch, taken in steps so that between them a worker can look up.
class Forward {
 public:
  virtual ~Forward() = default;

  // Computes at least one step (a layer, or a piece of one) and goes on until about `budget` rows
  // have passed through a layer. True when the pass is complete. INTERNAL if the pass failed;
  // RESOURCE_EXHAUSTED if the device has no memory left; UNAVAILABLE if it is lost.
  virtual absl::StatusOr<bool> Advance(int64_t budget) = 0;

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

  // Where it likes the inputs of its batches to lie.
  virtual TensorAllocator allocator() const { return Tensor::AllocateUnfilled; }

  // Does what would cost the first batches time, so that they need not wait for it. Called once,
  // before Start().
  virtual absl::Status Prepare() { return absl::OkStatus(); }

  // REQUIRES: a batch that the Padder made of items valid for info().signature.
  virtual absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) = 0;
};

// Makes one replica, on the thread that will run it; replicas are counted from 0.
using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>(int64_t replica)>;

}  // namespace linserve
