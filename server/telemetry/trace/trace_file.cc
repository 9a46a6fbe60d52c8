#include "telemetry/trace/trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/files/file.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

constexpr size_t kBuffer = 1 << 16;
constexpr std::chrono::seconds kEvery(1);

}  // namespace

absl::Status TraceFile::Open(const std::string& path, int64_t max_bytes) {
  {
    const MutexLock lock(mutex_);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
    Descriptor file(::open(path.c_str(), kFlags, 0666));
    if (file.get() < 0) {
      return absl::UnavailableError("cannot write the trace to " + path + ": " +
                                    std::strerror(errno));
    }
    file_ = std::move(file);
    buffer_ = "[\n";
    left_ = max_bytes;
    written_ = 0;
    open_ = true;
  }
  flushing_ = std::make_unique<Periodic>([this] {
    const MutexLock lock(mutex_);
    if (open_ && !Flush()) End(std::strerror(errno));
    return kEvery;
  });
  return absl::OkStatus();
}

void TraceFile::Close() {
  flushing_.reset();
  const MutexLock lock(mutex_);
  if (file_.get() < 0) return;
  if (open_ && !Flush()) End(std::strerror(errno));
  open_ = false;
  buffer_ = "{}]\n";
  Flush();
  file_.Close();
}

void TraceFile::Write(const std::string& events) {
  const MutexLock lock(mutex_);
  if (!open_) return;
  left_ -= static_cast<int64_t>(events.size());
  if (left_ < 0) return End(Flush() ? "trace_max_bytes are written" : std::strerror(errno));
  buffer_ += events;
  if (buffer_.size() >= kBuffer && !Flush()) End(std::strerror(errno));
}

void TraceFile::End(const std::string& reason) {
  open_ = false;
  Log(LogLevel::kWarning, "the trace ends here", {{"reason", reason}});
}

bool TraceFile::Flush() {
  const std::string events = std::exchange(buffer_, "");
  if (WriteBytes(file_.get(), events)) {
    written_ += static_cast<int64_t>(events.size());
    return true;
  }
  // The file is cut, so that no part of an event stays on a full disk.
  const int error = errno;
  static_cast<void>(::ftruncate(file_.get(), written_));
  errno = error;
  return false;
}

}  // namespace linserve
