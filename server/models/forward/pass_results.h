#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/sequence/batch.h"
#include "core/sequence/item.h"
#include "core/sequence/row_mask.h"
#include "core/sequence/signature.h"
#include "models/network/network.h"
#include "models/placement/placement.h"

namespace linserve {

// Says what is asked for of a sequence, and which rows of its outputs are there to be pooled.
struct Wanted {
  OutputOptions options;
  std::map<std::string, RowMask> masks{};  // by output; none where all rows are there
};

// Returns what is asked for of each sequence of a batch.
std::vector<Wanted> WantedOf(const Signature& signature, const Batch& batch);

// Returns what each sequence asked for of a complete pass, laid out by `axes`: pooled, normalised,
// converted and cropped, in memory of the host. On a device it is there once Placement::Finished
// says so. `look_up` is called now and then while long results are made. It may throw to give them
// up.
std::vector<TensorMap> ResultsOf(Pass& pass, const Signature& signature, const Placement& placement,
                                 const std::map<char, PlacedLayout>& axes,
                                 const std::vector<Wanted>& wanted,
                                 const std::function<void()>& look_up);

}  // namespace linserve
