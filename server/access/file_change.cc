#include "access/file_change.h"

#include <sys/stat.h>

namespace linserve {

FileState StateOf(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size,
          found.st_mtim.tv_sec * int64_t{1'000'000'000} + found.st_mtim.tv_nsec};
}

}  // namespace linserve
