#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/threads/clock.h"

namespace linserve {

// Tells one version of a file from another. It looks through links, because secrets of Kubernetes
// are replaced by moving a link.
struct FileState {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = -1;  // -1: there is no such file
  int64_t changed_ns = 0;

  bool operator==(const FileState&) const = default;
};

FileState StateOf(const std::string& path);

// Watches files that are read again when one of them has changed; it looks once a second at most. A
// change is one from how the files are when the watch is made.
class FileWatch {
 public:
  FileWatch(std::vector<std::string> paths, Clock& clock);

  // Returns true once for each change.
  bool Changed();

  // Takes how the files could be read. If they could not, they count as changed again at the next
  // look, as what keeps them from being read may change where they do not. Returns true for a fault
  // that is not that of the reading before.
  bool IsNews(const absl::Status& read);

 private:
  std::vector<FileState> States() const;

  std::vector<std::string> paths_;
  Clock* clock_;
  TimePoint next_look_;
  std::vector<FileState> seen_;
  absl::Status read_;
};

}  // namespace linserve
