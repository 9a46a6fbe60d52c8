#include "models/placement/tensors_in_use.h"

namespace linserve {

void TensorsInUse::Keep(const at::Tensor& tensor, const c10::Stream& user) {
  KeepForOthers(tensor, user);
  kept_.back().last_use.record(user);
}

void TensorsInUse::KeepForOthers(const at::Tensor& tensor, const c10::Stream& user) {
  kept_.push_back({tensor, user, c10::Event(user.device_type())});
}

void TensorsInUse::Drop() {
  std::erase_if(kept_, [](Kept& kept) {
    if (!kept.last_use.was_marked_for_recording()) {
      // Views are tensors of their own on the same storage.
      if (kept.tensor.use_count() > 1 || kept.tensor.storage().use_count() > 1) return false;
      kept.last_use.record(kept.user);
    }
    return kept.last_use.query();
  });
}

}  // namespace linserve
