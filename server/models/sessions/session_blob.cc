#include "models/sessions/session_blob.h"

#include <bit>
#include <cstring>

#include "core/system/sha256.h"

namespace linserve {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "LINSESS\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kVersionAt = kMagic.size();
constexpr size_t kFingerprintAt = kVersionAt + sizeof(kVersion);
constexpr size_t kPositionAt = kFingerprintAt + kSha256Bytes;
constexpr size_t kStateAt = kPositionAt + sizeof(int64_t);

template <typename T>
void Append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T Read(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

}  // namespace

std::string ToBytes(const SessionBlob& blob) {
  std::string bytes(kMagic);
  bytes.reserve(kStateAt + blob.state.size() + kSha256Bytes);
  Append(bytes, kVersion);
  bytes += blob.fingerprint;
  Append(bytes, blob.position);
  bytes += blob.state;
  return bytes += Sha256(bytes);
}

absl::StatusOr<SessionBlob> ParseSessionBlob(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) {
    return absl::InvalidArgumentError("the bytes are no saved session");
  }
  if (bytes.size() < kStateAt + kSha256Bytes) {
    return absl::InvalidArgumentError("the saved session is cut: it has " +
                                      std::to_string(bytes.size()) + " bytes");
  }
  const auto version = Read<uint32_t>(bytes, kVersionAt);
  if (version != kVersion) {
    return absl::InvalidArgumentError("the saved session is of version " + std::to_string(version) +
                                      " of its format; this server reads version " +
                                      std::to_string(kVersion));
  }
  const size_t end = bytes.size() - kSha256Bytes;
  if (Sha256(bytes.substr(0, end)) != bytes.substr(end)) {
    return absl::InvalidArgumentError(
        "the saved session was altered or cut: its bytes do not give its checksum");
  }
  return SessionBlob{bytes.substr(kFingerprintAt, kSha256Bytes), Read<int64_t>(bytes, kPositionAt),
                     bytes.substr(kStateAt, end - kStateAt)};
}

}  // namespace linserve
