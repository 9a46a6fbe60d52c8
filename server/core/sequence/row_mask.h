#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/sequence/signature.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Says which rows of an output are there, by the mask that came with the sequence.
struct RowMask {
  const InputSpec* spec;
  Tensor places;  // BOOL, one a row

  // Returns the mask of an output among `inputs`, which are a sequence's or a batch's; nullopt if
  // all rows are there.
  static std::optional<RowMask> Of(const Signature& signature, const OutputSpec& output,
                                   const TensorMap& inputs);

  // Returns those of the first `length` rows that are there. None past the mask's end is.
  std::vector<int64_t> Rows(int64_t length) const;
};

}  // namespace linserve
