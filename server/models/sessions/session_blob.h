#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace linserve {

// Is a session outside of a server, little-endian: 8 bytes that say what it is, the version of this
// format (u32), the model's fingerprint (32 bytes), the position (i64), the state (F32), and the
// SHA-256 of all that. The hash finds what was altered or cut by accident; it is no signature.
struct SessionBlob {
  std::string_view fingerprint;
  int64_t position = 0;
  std::string_view state;
};

std::string ToBytes(const SessionBlob& blob);

// The parts view the bytes. INVALID_ARGUMENT says what is wrong with them.
absl::StatusOr<SessionBlob> ParseSessionBlob(std::string_view bytes);

}  // namespace linserve
