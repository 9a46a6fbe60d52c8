#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linserve {

// The bytes of a file, mapped read-only for as long as `owner` or a copy of it lives.
struct MappedFile {
  const std::byte* bytes = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;

  // Gives back the memory of what was read of it; what is read again comes from the system's cache
  // of the file.
  void ReleasePages() const;
};

// NOT_FOUND if `path` cannot be opened, INVALID_ARGUMENT if it is not a regular file.
absl::StatusOr<MappedFile> MapFile(const std::string& path);

// Writes all of the bytes; false, with errno, if the system does not take them all.
bool WriteBytes(int descriptor, std::string_view bytes);

// Writes `parts` one after another into a new file beside `path`, then renames it over `path`: a
// reader, or a mapping of the old file, never sees half of it. On failure `path` is as it was.
absl::Status ReplaceFile(const std::string& path, const std::vector<std::string_view>& parts);

}  // namespace linserve
