#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batching/clock.h"

namespace linserve {

// What tells one version of a file from another, through links: secrets of Kubernetes are replaced
// by moving a link.
struct FileState {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = -1;  // -1: there is no such file
  int64_t changed_ns = 0;

  bool operator==(const FileState&) const = default;
};

FileState StateOf(const std::string& path);

// Files that are read again when one of them has changed, at which is looked once a second at most.
// As they are when this is made, they are not changed.
class FileWatch {
 public:
  FileWatch(std::vector<std::string> paths, Clock& clock);

  // True once for each change.
  bool Changed();

 private:
  std::vector<FileState> States() const;

  std::vector<std::string> paths_;
  Clock* clock_;
  TimePoint next_look_;
  std::vector<FileState> seen_;
};

}  // namespace linserve
