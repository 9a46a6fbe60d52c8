#pragma once

#include <cstdint>
#include <string>

namespace linserve {

// Expects that models with linear attention, whose heads of 32 and 64 our kernels take, give nearly
// the same rows on this device in BF16 and F16 as on the CPU in F32, for a sequence of `length`
// rows.
void ExpectLinearAttentionNearlyAsOnTheCpu(const std::string& device, int64_t length);

// Expects it of Linformers, whose heads are of every width that there are kernels for.
void ExpectLinformersNearlyAsOnTheCpu(const std::string& device, int64_t length);

}  // namespace linserve
