#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Reads one array of NumPy's .npy format: versions 1.0 to 3.0, C order, little-endian, of type
// bool, signed integers, u1, f2, f4 or f8. INVALID_ARGUMENT names the file, what stands there and
// what was expected; Fortran order, big-endian and object arrays are refused.
absl::StatusOr<Tensor> ReadNpy(const std::string& path);
absl::StatusOr<Tensor> ParseNpy(const std::byte* bytes, size_t size,
                                std::shared_ptr<const void> owner, const std::string& name);

// Writes the tensor in version 1.0 of the format. BF16, which NumPy lacks, is written as f4. The
// bytes go into a file beside `path`, which is then renamed.
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace linserve
