#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/files/descriptor.h"

namespace linserve {

// Reads a regular file piece by piece. Files are read and never mapped: a mapped file that is
// truncated ends whoever touches it.
class InputFile {
 public:
  // NOT_FOUND if `path` cannot be opened, INVALID_ARGUMENT if it is not a regular file.
  static absl::StatusOr<InputFile> Open(const std::string& path);

  size_t size() const { return size_; }  // as it was when the file was opened

  // Returns RESOURCE_EXHAUSTED if it is larger than the memory that there is.
  absl::Status CheckFits() const;

  // Reads `size` bytes from `offset` on. DATA_LOSS if they are not there any more.
  absl::Status Read(size_t offset, std::byte* into, size_t size) const;

  // Returns DATA_LOSS if the file was written to since it was opened, so that what was read may be
  // half the old and half the new.
  absl::Status CheckUnchanged() const;

 private:
  InputFile(Descriptor descriptor, std::string path, size_t size, int64_t changed_ns)
      : descriptor_(std::move(descriptor)),
        path_(std::move(path)),
        size_(size),
        changed_ns_(changed_ns) {}

  absl::Status Changed(const std::string& how) const;

  Descriptor descriptor_;
  std::string path_;
  size_t size_;
  int64_t changed_ns_;
};

// Says what may be read: regular files, or also pipes, whose end is waited for.
enum class FileKind : uint8_t { kRegular, kAny };

// Reads a whole file of at most `most_bytes`. NOT_FOUND if it cannot be opened, INVALID_ARGUMENT if
// it is of another kind, or longer.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t most_bytes,
                                     FileKind kind = FileKind::kRegular);

// Writes all of the bytes. Returns false, and leaves errno set, if the system does not take them
// all.
bool WriteBytes(int descriptor, std::string_view bytes);

// Writes `parts` one after another into a new file beside `path`, then renames it over `path`: a
// reader never sees half of it, and on failure `path` is as it was. Where no file can take the
// place of `path`, it is written to.
absl::Status ReplaceFile(const std::string& path, const std::vector<std::string_view>& parts);

}  // namespace linserve
