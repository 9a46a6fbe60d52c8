#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/rows/placed_layout.h"
#include "core/sequence/batch.h"
#include "engine/model.h"
#include "models/sessions/session_memory.h"
#include "models/sessions/session_plan.h"

namespace linserve {

// Manages the sessions of one model: makes them on the host, and turns them into bytes and back.
class TorchSessions : public SessionSource {
 public:
  TorchSessions(SessionPlan plan, ModelInfo info);

  absl::StatusOr<std::shared_ptr<SessionState>> New() const override;
  absl::StatusOr<std::shared_ptr<SessionState>> Restore(std::string_view blob) const override;

  // Saves a session as Model::Save() says; what LibTorch throws passes through.
  absl::StatusOr<std::string> Save(const SessionState& session) const;

  // Returns the sessions of the batch, in its order. INVALID_ARGUMENT as Model::Start() says.
  absl::StatusOr<std::vector<std::shared_ptr<TorchSession>>> Of(const Batch& batch) const;

 private:
  absl::Status CheckChunk(const Batch& batch, size_t sequence) const;

  const SessionPlan plan_;
  const ModelInfo info_;
};

}  // namespace linserve
