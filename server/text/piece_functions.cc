#include "text/piece_functions.h"

#include <dlfcn.h>

#include <string>

#include "core/own_libraries.h"

namespace linserve {
namespace {

absl::StatusOr<const PieceFunctions*> Open() {
  const auto libraries = LibraryDirectory();
  if (!libraries.ok()) return libraries.status();
  const std::string path = *libraries + "/liblinserve_sentencepiece.so";
  // RTLD_DEEPBIND keeps the library to its own symbols. dlmopen() is dlopen() here, but for the
  // sanitizers, which refuse the flag: they fear memory that one side takes and the other frees, of
  // which there is none.
  void* library = dlmopen(LM_ID_BASE, path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == nullptr) {
    return absl::FailedPreconditionError("cannot open the library of tokenizers: " + LoaderError());
  }
  const auto entry = reinterpret_cast<PieceFunctionsEntry>(dlsym(library, kPieceFunctionsEntry));
  if (entry == nullptr) {
    return absl::FailedPreconditionError(path + " is not a library of linserve: " + LoaderError());
  }
  return entry();
}

}  // namespace

absl::StatusOr<const PieceFunctions*> OpenPieceFunctions() {
  static const auto* functions = new absl::StatusOr<const PieceFunctions*>(Open());
  return *functions;
}

}  // namespace linserve
