#pragma once

#include <map>
#include <vector>

#include "core/item.h"
#include "core/signature.h"
#include "models/network.h"
#include "models/placement.h"

namespace linserve {

// What each sequence asked for of a complete pass, laid out by `axes`: pooled, normalised,
// converted and cropped, in memory of the host. On a device it is there once Placement::Finished
// says so.
std::vector<TensorMap> ResultsOf(Pass& pass, const Signature& signature, const Placement& placement,
                                 const std::map<char, AxisLayout>& axes,
                                 const std::vector<OutputOptions>& options);

}  // namespace linserve
