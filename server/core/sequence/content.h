#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

// Finds the first NaN or infinity of a float tensor, read as F32: batches are computed from F32, in
// which an F64 past its range is an infinity too.
std::optional<Fault> FindNonfinite(const Tensor& tensor);

// Finds the first NaN or positive infinity of a float tensor, read as F32.
std::optional<Fault> FindNoScore(const Tensor& tensor);

// Finds the first element of an integer or BOOL tensor that is not 0 <= element < limit.
std::optional<Fault> FindOutside(const Tensor& tensor, int64_t limit);

}  // namespace linserve
