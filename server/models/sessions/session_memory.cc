#include "models/sessions/session_memory.h"

#include <algorithm>
#include <utility>

#include "attention/rows/aten.h"
#include "models/placement/guarded.h"

namespace linserve {

TorchSession::TorchSession(const SessionPlan& plan, std::string fingerprint)
    : fingerprint_(std::move(fingerprint)) {
  for (const StateSlot& slot : plan.slots) {
    // LibTorch must not fill them: this runs on threads of the RPC layer, which are to make no
    // others of LibTorch's.
    const at::Tensor& made = slots_.emplace_back(at::empty(slot.shape, at::kFloat));
    std::fill_n(made.mutable_data_ptr<float>(), made.numel(), static_cast<float>(slot.initial));
  }
}

TorchSession::~TorchSession() {
  if (TorchSession::lost()) Leak(std::move(slots_));
}

int64_t TorchSession::bytes() const {
  int64_t sum = 0;
  for (const at::Tensor& slot : slots_) sum += static_cast<int64_t>(slot.nbytes());
  return sum;
}

at::Tensor TorchSession::ToHost() const { return home_.Fetch(slots_); }

void TorchSession::Set(int64_t position, const at::Tensor& state) {
  position_ = position;
  int64_t element = 0;
  for (const at::Tensor& slot : slots_) {
    std::copy_n(state.const_data_ptr<float>() + element, slot.numel(),
                slot.mutable_data_ptr<float>());
    element += slot.numel();
  }
}

SessionMemory::SessionMemory(std::vector<std::shared_ptr<TorchSession>> sessions,
                             const PlacedLayout& layout, const Placement& placement)
    : placement_(placement), sessions_(std::move(sessions)), lengths_(layout.lengths) {
  const at::Tensor rows = placement.HostTensor({layout.rows}, at::kLong);
  auto* row = rows.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < sessions_.size(); ++i) {
    positions_.push_back(sessions_[i]->position());
    for (int64_t offset = 0; offset < lengths_[i]; ++offset) *row++ = positions_[i] + offset;
  }
  row_positions_ = placement.ToDevice(rows);
}

at::Tensor SessionMemory::OnDevice(const at::Tensor& slot) const {
  if (placement_.on_host() || slot.device() == placement_.device()) {
    return slot.to(placement_.device());
  }
  const at::Tensor host = placement_.HostTensor(slot.sizes(), slot.scalar_type());
  host.copy_(slot);
  return placement_.ToDevice(host);
}

at::Tensor SessionMemory::Next() {
  std::vector<at::Tensor> parts;
  parts.reserve(sessions_.size());
  for (const auto& session : sessions_) {
    parts.push_back(OnDevice(session->slots_[slots_.size()]));
  }
  return slots_.emplace_back(at::stack(parts));
}

bool SessionMemory::is_step() const {
  return placement_.on_host() &&
         std::all_of(lengths_.begin(), lengths_.end(), [](int64_t length) { return length == 1; });
}

std::vector<at::Tensor> SessionMemory::NextInPlace() {
  std::vector<at::Tensor> own;
  own.reserve(sessions_.size());
  for (const auto& session : sessions_) {
    at::Tensor& slot = session->slots_[slots_.size()];
    if (!slot.is_cpu()) slot = slot.cpu();
    own.push_back(slot);
  }
  slots_.emplace_back();
  return own;
}

void SessionMemory::Detach() {
  for (const at::Tensor& slot : slots_) {
    std::vector<at::Tensor>& rows = detached_.emplace_back();
    for (const at::Tensor& row : slot.unbind(0)) rows.push_back(row.clone());
  }
}

void SessionMemory::Commit() {
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (!forgotten_.contains(i)) Take(i);
  }
}

void SessionMemory::Take(size_t sequence) {
  TorchSession& session = *sessions_[sequence];
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    at::Tensor& kept = session.slots_[slot];
    if (!slots_[slot].defined()) continue;
    if (!detached_.empty()) {
      kept = detached_[slot][sequence];
    } else if (sessions_.size() == 1) {
      kept = slots_[slot][0];
    } else {
      // The tensor is copied, since a view would keep the whole batch's.
      const at::Tensor own = slots_[slot][static_cast<int64_t>(sequence)];
      if (kept.device() == own.device()) {
        kept.copy_(own);
      } else {
        kept = own.clone();
      }
    }
  }
  session.position_ += lengths_[sequence];
  session.home_ = placement_;
}

}  // namespace linserve
