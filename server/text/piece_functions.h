#pragma once

#include "absl/status/statusor.h"
#include "text/sentencepiece/functions.h"

namespace linserve {

// Opens the library of tokenizers, once. FAILED_PRECONDITION if that cannot be.
absl::StatusOr<const PieceFunctions*> OpenPieceFunctions();

}  // namespace linserve
