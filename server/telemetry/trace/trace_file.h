#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/files/descriptor.h"
#include "core/threads/mutex.h"
#include "core/threads/periodic.h"

namespace linserve {

// Writes a file that grows by whole events, once a second or when many have come, so that a copy of
// it can be read meanwhile. The file is an array whose end may be missing, which readers of traces
// allow.
class TraceFile {
 public:
  // Opens the file. Returns UNAVAILABLE if it cannot be written.
  absl::Status Open(const std::string& path, int64_t max_bytes);
  void Close();
  bool open() const { return open_; }

  // Writes events as JSON, each with a comma and the end of its line. What cannot be written any
  // more, for the bound or the disk, is lost, and the log says so.
  void Write(const std::string& events);

 private:
  void End(const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<bool> open_ = false;
  std::unique_ptr<Periodic> flushing_;
  Mutex mutex_;
  Descriptor file_ ABSL_GUARDED_BY(mutex_){-1};
  std::string buffer_ ABSL_GUARDED_BY(mutex_);
  int64_t left_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace linserve
