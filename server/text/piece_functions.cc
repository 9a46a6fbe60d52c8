#include "text/piece_functions.h"

#include <dlfcn.h>

#include <string>

#include "core/own_libraries.h"

// The library's allocations come to AddressSanitizer as malloc(), its deallocations as delete: each
// goes through libstdc++, which finds only the latter replaced.
#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
extern "C" const char* __asan_default_options() { return "alloc_dealloc_mismatch=0"; }
#endif

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
