#include "models/forward/torch_sessions.h"

#include <set>
#include <utility>

#include "attention/rows/aten.h"
#include "models/placement/guarded.h"
#include "models/placement/placement.h"
#include "models/sessions/session_blob.h"

namespace linserve {

TorchSessions::TorchSessions(SessionPlan plan, ModelInfo info)
    : plan_(std::move(plan)), info_(std::move(info)) {}

absl::StatusOr<std::shared_ptr<SessionState>> TorchSessions::New() const {
  return Guarded(Placement(at::kCPU), [&]() -> std::shared_ptr<SessionState> {
    return std::make_shared<TorchSession>(plan_, info_.fingerprint);
  });
}

absl::StatusOr<std::string> TorchSessions::Save(const SessionState& session) const {
  const auto* own = dynamic_cast<const TorchSession*>(&session);
  if (own == nullptr || own->fingerprint() != info_.fingerprint) {
    return absl::InvalidArgumentError("the session is of another model");
  }
  const at::Tensor state = own->ToHost();
  return ToBytes({own->fingerprint(),
                  own->position(),
                  {static_cast<const char*>(state.const_data_ptr()), state.nbytes()}});
}

absl::StatusOr<std::shared_ptr<SessionState>> TorchSessions::Restore(std::string_view blob) const {
  const auto parsed = ParseSessionBlob(blob);
  if (!parsed.ok()) return parsed.status();
  if (parsed->fingerprint != info_.fingerprint) {
    return absl::InvalidArgumentError(
        "the saved session is of another model, or of the same one with other arguments, weights "
        "or dtype than " +
        info_.architecture + " in " + std::string(Name(info_.dtype)));
  }
  // No sequence comes further, and sums with this position do not overflow.
  constexpr int64_t kFurthestRow = int64_t{1} << 48;
  if (std::cmp_not_equal(parsed->state.size(), info_.session_bytes) || parsed->position < 0 ||
      parsed->position > kFurthestRow) {
    return absl::InvalidArgumentError("the saved session does not hold a state of this model");
  }
  return Guarded(Placement(at::kCPU), [&]() -> std::shared_ptr<SessionState> {
    const at::Tensor state = at::empty({plan_.elements()}, at::kFloat);
    parsed->state.copy(static_cast<char*>(state.mutable_data_ptr()), state.nbytes());
    auto session = std::make_shared<TorchSession>(plan_, info_.fingerprint);
    session->Set(parsed->position, state);
    return session;
  });
}

absl::Status TorchSessions::CheckChunk(const Batch& batch, size_t sequence) const {
  const auto* own = dynamic_cast<const TorchSession*>(batch.sessions[sequence].get());
  if (own == nullptr || own->fingerprint() != info_.fingerprint) {
    return absl::InvalidArgumentError("the session is of another model");
  }
  // ValidateChunk() looks at nothing else of an item than which inputs it has, and how long they
  // are.
  Item chunk{.inputs = {}, .options = {}, .session = batch.sessions[sequence]};
  for (const auto& [name, tensor] : batch.inputs) {
    const char letter = info_.signature.FindInput(name)->axes[0].letter;
    chunk.inputs[name] = Crop(batch.axes.at(letter), tensor, sequence);
  }
  return ValidateChunk(info_.signature, chunk);
}

absl::StatusOr<std::vector<std::shared_ptr<TorchSession>>> TorchSessions::Of(
    const Batch& batch) const {
  std::vector<std::shared_ptr<TorchSession>> sessions;
  if (batch.sessions.empty()) return sessions;
  if (!plan_.refusal.empty()) return absl::UnimplementedError(plan_.refusal);
  if (batch.sessions.size() != batch.size() || batch.padding != Padding::kPacked) {
    return absl::InvalidArgumentError("chunks of sessions share a batch with nothing else, packed");
  }
  std::set<const SessionState*> seen;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (absl::Status status = CheckChunk(batch, i); !status.ok()) return status;
    if (!seen.insert(batch.sessions[i].get()).second) {
      return absl::InvalidArgumentError("two chunks of one session are in a batch");
    }
    sessions.push_back(std::static_pointer_cast<TorchSession>(batch.sessions[i]));
  }
  return sessions;
}

}  // namespace linserve
