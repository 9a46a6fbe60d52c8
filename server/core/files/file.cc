#include "core/files/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/strings/quote.h"
#include "core/system/memory.h"

namespace linserve {
namespace {

absl::Status SystemError(const std::string& what, const std::string& path) {
  return absl::ErrnoToStatus(errno, "cannot " + what + " " + Quoted(path));
}

// Makes a name that no other thread or process writes to, in the same directory so that rename()
// works.
std::string NameBeside(const std::string& path) {
  static std::atomic<uint64_t> counter = 0;
  return path + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++counter);
}

absl::Status WriteNewFile(const std::string& path, const std::vector<std::string_view>& parts) {
  // O_TRUNC is there because a process with this id may have died here before.
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return SystemError("create", path);
  for (std::string_view part : parts) {
    if (!WriteBytes(file.get(), part)) return SystemError("write", path);
  }
  // Without fsync() a crash of the machine may leave the new name with none of the new bytes.
  if (::fsync(file.get()) != 0 || !file.Close()) return SystemError("write", path);
  return absl::OkStatus();
}

// Writes into a file of which no other may take the place, such as a pipe.
absl::Status WriteInPlace(const std::string& path, const std::vector<std::string_view>& parts) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file.get() < 0) return SystemError("write", path);
  for (std::string_view part : parts) {
    if (!WriteBytes(file.get(), part)) return SystemError("write", path);
  }
  return file.Close() ? absl::OkStatus() : SystemError("write", path);
}

// Opens a file, and says in `about` what it is.
absl::StatusOr<Descriptor> OpenToRead(const std::string& path, FileKind kind, struct stat& about) {
  // O_NONBLOCK is there because opening a named pipe must not wait for its writer.
  const int wait = kind == FileKind::kAny ? 0 : O_NONBLOCK;
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | wait));
  if (file.get() < 0) {
    return absl::NotFoundError("cannot open " + Quoted(path) + ": " +
                               std::generic_category().message(errno));
  }
  if (::fstat(file.get(), &about) != 0) return SystemError("examine", path);
  if (kind == FileKind::kAny || S_ISREG(about.st_mode)) return file;
  return absl::InvalidArgumentError(Quoted(path) + " is not a file, expected a regular file");
}

// Returns when a file was last written to.
int64_t ChangeOf(const struct stat& about) {
  return about.st_mtim.tv_sec * int64_t{1'000'000'000} + about.st_mtim.tv_nsec;
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

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  struct stat about {};
  auto file = OpenToRead(path, FileKind::kRegular, about);
  if (!file.ok()) return file.status();
  return InputFile(*std::move(file), path, static_cast<size_t>(about.st_size), ChangeOf(about));
}

absl::Status InputFile::CheckFits() const {
  if (size_ <= static_cast<size_t>(MemoryBytes())) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "the file " + Quoted(path_) + " is of " + FormatBytes(static_cast<double>(size_)) +
      ", but there are " + FormatBytes(static_cast<double>(MemoryBytes())) + " of memory");
}

absl::Status InputFile::Read(size_t offset, std::byte* into, size_t size) const {
  while (size > 0) {
    const ssize_t read = ::pread(descriptor_.get(), into, size, static_cast<off_t>(offset));
    if (read == 0) return Changed("became shorter");
    if (read < 0 && errno != EINTR) return SystemError("read", path_);
    if (read < 0) continue;
    offset += static_cast<size_t>(read);
    into += read;
    size -= static_cast<size_t>(read);
  }
  return absl::OkStatus();
}

absl::Status InputFile::CheckUnchanged() const {
  struct stat now {};
  if (::fstat(descriptor_.get(), &now) != 0) return SystemError("examine", path_);
  const bool same = static_cast<size_t>(now.st_size) == size_ && ChangeOf(now) == changed_ns_;
  return same ? absl::OkStatus() : Changed("was written to");
}

absl::Status InputFile::Changed(const std::string& how) const {
  return absl::DataLossError("the file " + Quoted(path_) + " " + how +
                             " while it was read; replace a file by renaming another over it");
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t most_bytes, FileKind kind) {
  struct stat about {};
  const auto file = OpenToRead(path, kind, about);
  if (!file.ok()) return file.status();
  constexpr size_t kPiece = 1 << 16;
  std::string content;
  for (ssize_t read = 1; read != 0;) {
    const size_t before = content.size();
    content.resize(before + kPiece);
    do {
      read = ::read(file->get(), content.data() + before, kPiece);
    } while (read < 0 && errno == EINTR);
    if (read < 0) return SystemError("read", path);
    content.resize(before + static_cast<size_t>(read));
    if (content.size() > most_bytes) {
      return absl::InvalidArgumentError(Quoted(path) + " is longer than " +
                                        std::to_string(most_bytes) +
                                        " bytes, which are the most that are read");
    }
  }
  return content;
}

absl::Status ReplaceFile(const std::string& path, const std::vector<std::string_view>& parts) {
  std::error_code error;
  const std::filesystem::path led_to = std::filesystem::canonical(path, error);
  const std::string target = error ? path : led_to.string();
  struct stat about {};
  if (::stat(target.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) {
    return WriteInPlace(target, parts);
  }
  const std::string beside = NameBeside(target);
  errno = 0;
  absl::Status status = WriteNewFile(beside, parts);
  if (status.ok() && ::rename(beside.c_str(), target.c_str()) != 0) {
    status = SystemError("replace", path);
  }
  if (status.ok()) return status;
  const int why = errno;
  ::unlink(beside.c_str());
  // The folder may take no new file, or none of so long a name, or the file be a mount of its own.
  const bool kept =
      why == EACCES || why == EPERM || why == EROFS || why == EBUSY || why == ENAMETOOLONG;
  return kept && ::access(target.c_str(), W_OK) == 0 ? WriteInPlace(target, parts) : status;
}

}  // namespace linserve
