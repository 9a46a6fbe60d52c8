#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace linserve {

// These functions are for libraries of ours that are opened at run time.

// Returns where our libraries lie: lib/ beside the directory of the program.
absl::StatusOr<std::string> LibraryDirectory();

// Says why the last call of dlopen() or dlsym() on this thread failed.
std::string LoaderError();

}  // namespace linserve
