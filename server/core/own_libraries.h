#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace linserve {

// Of libraries of ours that are opened at run time.

// Where they lie: lib/ beside the directory of the program.
absl::StatusOr<std::string> LibraryDirectory();

// Why the last call of dlopen() or dlsym() on this thread failed.
std::string LoaderError();

}  // namespace linserve
