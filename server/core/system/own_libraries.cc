#include "core/system/own_libraries.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace linserve {

absl::StatusOr<std::string> LibraryDirectory() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError("cannot find the program's own path: " + error.message());
  return (program.parent_path().parent_path() / "lib").string();
}

std::string LoaderError() {
  const char* error = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc's is a thread's own
  return error != nullptr ? error : "unknown error";
}

}  // namespace linserve
