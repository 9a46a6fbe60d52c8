#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/sequence/session_state.h"

namespace linserve {

// Makes the sessions of a model. Thread-safe; it outlives the model.
class SessionSource {
 public:
  virtual ~SessionSource() = default;

  // Returns a session that has read nothing yet. RESOURCE_EXHAUSTED means that there is no memory
  // for it.
  virtual absl::StatusOr<std::shared_ptr<SessionState>> New() const = 0;

  // Returns a session that goes on where Model::Save() was called, maybe of another replica of the
  // same model. INVALID_ARGUMENT means that the bytes were altered or cut, or are of another
  // version or another model.
  virtual absl::StatusOr<std::shared_ptr<SessionState>> Restore(std::string_view blob) const = 0;
};

}  // namespace linserve
