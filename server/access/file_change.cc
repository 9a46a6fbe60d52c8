#include "access/file_change.h"

#include <sys/stat.h>

#include <chrono>
#include <utility>

namespace linserve {
namespace {

constexpr std::chrono::seconds kBetweenLooks(1);

}  // namespace

FileState StateOf(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size,
          found.st_mtim.tv_sec * int64_t{1'000'000'000} + found.st_mtim.tv_nsec};
}

FileWatch::FileWatch(std::vector<std::string> paths, Clock& clock)
    : paths_(std::move(paths)),
      clock_(&clock),
      next_look_(clock.Now() + kBetweenLooks),
      seen_(States()) {}

bool FileWatch::Changed() {
  if (clock_->Now() < next_look_) return false;
  next_look_ = clock_->Now() + kBetweenLooks;
  std::vector<FileState> states = States();
  if (states == seen_) return false;
  seen_ = std::move(states);
  return true;
}

bool FileWatch::IsNews(const absl::Status& read) {
  if (!read.ok()) seen_.clear();
  return std::exchange(read_, read) != read && !read.ok();
}

std::vector<FileState> FileWatch::States() const {
  std::vector<FileState> states;
  for (const std::string& path : paths_) states.push_back(StateOf(path));
  return states;
}

}  // namespace linserve
