#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/sequence/item.h"
#include "core/sequence/signature.h"
#include "models/network/network.h"
#include "models/network/placement.h"

namespace linserve {

// Returns what each sequence asked for of a complete pass, laid out by `axes`: pooled, normalised,
// converted and cropped, in memory of the host. On a device it is there once Placement::Finished
// says so. `look_up` is called now and then while long results are made. It may throw to give them
// up.
std::vector<TensorMap> ResultsOf(Pass& pass, const Signature& signature, const Placement& placement,
                                 const std::map<char, PlacedLayout>& axes,
                                 const std::vector<OutputOptions>& options,
                                 const std::function<void()>& look_up);

}  // namespace linserve
