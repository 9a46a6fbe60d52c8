#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/descriptor.h"
#include "core/mutex.h"
#include "core/periodic.h"

namespace linserve {

// A file that grows by whole events, once a second or when many have come, so that a copy of it can
// be read meanwhile. An array whose end may be missing, which readers of traces allow.
class TraceFile {
 public:
  // UNAVAILABLE if it cannot be written.
  absl::Status Open(const std::string& path, int64_t max_bytes);
  void Close();
  bool open() const { return open_; }

  // Events as JSON, each with a comma and the end of its line. What cannot be written any more, for
  // the bound or the disk, is lost, and the log says so.
  void Write(const std::string& events);

 private:
  void End(const std::string& reason) LINSERVE_REQUIRES(mutex_);
  bool Flush() LINSERVE_REQUIRES(mutex_);

  std::atomic<bool> open_ = false;
  std::unique_ptr<Periodic> flushing_;
  Mutex mutex_;
  Descriptor file_ LINSERVE_GUARDED_BY(mutex_){-1};
  std::string buffer_ LINSERVE_GUARDED_BY(mutex_);
  int64_t left_ LINSERVE_GUARDED_BY(mutex_) = 0;
  int64_t written_ LINSERVE_GUARDED_BY(mutex_) = 0;
};

}  // namespace linserve
