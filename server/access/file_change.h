#pragma once

#include <cstdint>
#include <string>

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

}  // namespace linserve
