#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "attention/rows/placed_layout.h"
#include "core/sequence/batch.h"
#include "core/sequence/signature.h"
#include "engine/model.h"
#include "models/forward/pass_results.h"
#include "models/forward/recorded_passes.h"
#include "models/network/network.h"
#include "models/placement/placement.h"
#include "models/sessions/session_memory.h"

namespace linserve {

// Is a forward pass of any network: on the CPU in parts that the replica's threads take in turn.
class TorchForward : public Forward {
 public:
  // `sessions` are those of the sequences, or empty. All references must outlive this, but for the
  // batch.
  TorchForward(const Network& network, const Signature& signature, const Placement& placement,
               const TensorBatch& batch, const std::vector<Wanted>& wanted,
               const std::vector<std::shared_ptr<TorchSession>>& sessions, int64_t rows);

  // Takes over a pass that was recorded, and has been asked for already.
  TorchForward(const Signature& signature, const Placement& placement,
               RecordedPasses::Replayed replayed, std::vector<Wanted> wanted);

  ~TorchForward() override;

  // Once a pass is complete on a device, it has been asked for, and so have its results.
  absl::StatusOr<bool> Advance(const Between& between) override;

  // Sequences that are computed together are left out together.
  bool Forget(size_t sequence) override;

  // The sessions are one chunk further once there is nothing left that can fail.
  absl::StatusOr<Results> TakeResults(const Between& between) override;
  using Forward::TakeResults;

 private:
  absl::StatusOr<bool> TryAdvance(const Between& between);

  // Holds the sequences that one thread computes together.
  struct Part {
    std::map<char, PlacedLayout> axes;
    std::vector<Wanted> wanted;
    std::shared_ptr<Pass> pass;             // null once all of its sequences are forgotten
    std::shared_ptr<SessionMemory> memory;  // of chunks of sessions
    bool done = false;
    size_t forgotten = 0;

    // Computes the next layer; false once there is none left.
    bool Step() { return !done && !(done = !pass->Step()); }
    bool Forget(size_t sequence);
  };

  std::vector<TensorMap> Collect(const Between& between);
  Results CheckResults();

  const Signature& signature_;
  const Placement& placement_;
  std::vector<Part> parts_;
  std::vector<TensorMap> results_;  // on a device, from when the pass is complete
  std::optional<Placement::Finished> finished_;
  int64_t slice_rows_;
  bool long_;    // a step has several slices
  int threads_;  // that compute it
};

}  // namespace linserve
