#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/sequence/signature.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Returns whether an input of this kind may have elements of this type.
bool Takes(InputKind kind, DType dtype);

// Describes an element that must not be there.
struct Fault {
  Shape position;
  std::string value;
};

// Finds the first NaN or infinity of a float tensor, read as another float type: what is past the
// range of that one is an infinity too. Batches are computed from F32.
std::optional<Fault> FindNonfinite(const Tensor& tensor, DType read_as = DType::kF32);

// Returns OK if all that a sequence became is finite. OUT_OF_RANGE names the output, what it holds
// and where; I8 is looked at by its scales.
absl::Status CheckFinite(const TensorMap& outputs);

// Finds the first NaN or positive infinity of a float tensor, read as F32.
std::optional<Fault> FindNoScore(const Tensor& tensor);

// Finds the first element of an integer or BOOL tensor that is not 0 <= element < limit.
std::optional<Fault> FindOutside(const Tensor& tensor, int64_t limit);

}  // namespace linserve
