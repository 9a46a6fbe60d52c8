#include "core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/descriptor.h"
#include "core/quote.h"

namespace linserve {
namespace {

absl::Status SystemError(const std::string& what, const std::string& path) {
  return absl::ErrnoToStatus(errno, "cannot " + what + " " + Quoted(path));
}

// A name that no other thread or process writes to, in the same directory so that rename() works.
std::string NameBeside(const std::string& path) {
  static std::atomic<uint64_t> counter = 0;
  return path + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++counter);
}

absl::Status WriteNewFile(const std::string& path, const std::vector<std::string_view>& parts) {
  // O_TRUNC: a process of the same id may have died here before.
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return SystemError("create", path);
  for (std::string_view part : parts) {
    if (!WriteBytes(file.get(), part)) return SystemError("write", path);
  }
  // Without it a crash of the machine may leave the new name with none of the new bytes.
  if (::fsync(file.get()) != 0 || !file.Close()) return SystemError("write", path);
  return absl::OkStatus();
}

}  // namespace

bool WriteBytes(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

absl::StatusOr<MappedFile> MapFile(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    return absl::NotFoundError("cannot open " + Quoted(path) + ": " + std::strerror(errno));
  }
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return SystemError("examine", path);
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(Quoted(path) + " is not a file, expected a regular file");
  }
  const auto size = static_cast<size_t>(about.st_size);
  if (size == 0) return MappedFile{};  // which mmap() refuses
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return SystemError("map", path);
  std::shared_ptr<const void> owner(address, [size](void* start) { ::munmap(start, size); });
  return MappedFile{static_cast<const std::byte*>(address), size, std::move(owner)};
}

void MappedFile::ReleasePages() const {
  // Advice only: without it, more stays resident.
  if (bytes != nullptr) ::madvise(const_cast<std::byte*>(bytes), size, MADV_DONTNEED);
}

absl::Status ReplaceFile(const std::string& path, const std::vector<std::string_view>& parts) {
  const std::string beside = NameBeside(path);
  absl::Status status = WriteNewFile(beside, parts);
  if (status.ok() && ::rename(beside.c_str(), path.c_str()) != 0) {
    status = SystemError("replace", path);
  }
  if (!status.ok()) ::unlink(beside.c_str());
  return status;
}

}  // namespace linserve
