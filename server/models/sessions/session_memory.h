#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "attention/rows/placed_layout.h"
#include "core/sequence/session_state.h"
#include "models/placement/placement.h"
#include "models/sessions/session_plan.h"

namespace linserve {

// Holds the state of one sequence: the tensors of its network's plan, where the last chunk of it
// was computed.
class TorchSession : public SessionState {
 public:
  // Makes the state before the first row of a model with this fingerprint.
  TorchSession(const SessionPlan& plan, std::string fingerprint);
  ~TorchSession() override;

  int64_t position() const override { return position_; }
  int64_t bytes() const override;
  bool lost() const override { return home_.lost(); }

  const std::string& fingerprint() const { return fingerprint_; }

  // Returns the state as numbers in the order of the plan, on the host: F32 [elements].
  at::Tensor ToHost() const;
  // Inverts ToHost(). REQUIRES: no chunk of it has been computed.
  void Set(int64_t position, const at::Tensor& state);

 private:
  friend class SessionMemory;

  std::string fingerprint_;
  int64_t position_ = 0;
  std::vector<at::Tensor> slots_;
  Placement home_{at::kCPU};  // of the replica that computed the last chunk
};

// Holds the sessions of a batch as a pass sees them: copies of their states, put together for all
// of the batch's sequences, which the layers rewrite in place. The sessions themselves change at
// Commit(), but for what NextInPlace() gives.
class SessionMemory {
 public:
  // The sequences are laid out by `layout`, which is packed.
  SessionMemory(std::vector<std::shared_ptr<TorchSession>> sessions, const PlacedLayout& layout,
                const Placement& placement);

  // Returns the next tensor of the plan: F32 [sequences, ...], contiguous. Each pass asks for all
  // of them, in the order of the plan.
  at::Tensor Next();

  // Says whether these are single rows on the host. Then the next tensor may be asked for as those
  // of the sessions themselves, one a sequence, in which nothing may change that the session still
  // needs if the pass comes to nothing.
  bool is_step() const;
  std::vector<at::Tensor> NextInPlace();

  // Returns the number of rows that each sequence had before the batch's.
  const std::vector<int64_t>& positions() const { return positions_; }
  // Returns the position of each of the batch's rows: I64 [rows].
  const at::Tensor& row_positions() const { return row_positions_; }

  // Leaves this sequence's session as it is.
  void Forget(size_t sequence) { forgotten_.insert(sequence); }
  // Lets the device make of the batch's tensors what Commit() takes. To be called before it is
  // waited for.
  void Detach();
  // Makes the sessions what the layers have made of them. To be called after a complete pass.
  void Commit();

 private:
  void Take(size_t sequence);
  // Brings a session's state to the device, which goes on computing meanwhile.
  at::Tensor OnDevice(const at::Tensor& slot) const;

  const Placement placement_;
  std::vector<std::shared_ptr<TorchSession>> sessions_;
  std::set<size_t> forgotten_;
  std::vector<int64_t> lengths_;
  std::vector<int64_t> positions_;
  at::Tensor row_positions_;
  std::vector<at::Tensor> slots_;                  // undefined: changed in place
  std::vector<std::vector<at::Tensor>> detached_;  // of each slot, of each sequence
};

}  // namespace linserve
