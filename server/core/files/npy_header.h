#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"

namespace linserve {

constexpr size_t kMostNpyAxes = 64;  // NumPy's own limit

// Holds what the header of an .npy file says.
struct NpyHeader {
  DType dtype = DType::kF32;
  Shape shape;
};

// Reads the Python dictionary "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".
// INVALID_ARGUMENT, without the name of the file, names what stands there and what was expected.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text);

// Writes the header's dictionary, without padding. REQUIRES: a dtype that NumPy has, thus not BF16.
std::string NpyHeaderText(const NpyHeader& header);

}  // namespace linserve
