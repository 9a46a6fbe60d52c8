#pragma once

#include <cstdint>

namespace linserve {

// Returns the number of processors that this process may use: its affinity, or the quota of its
// control groups if that is less, as a container's CPU limit is. At least 1.
int64_t Processors();

// Makes Processors() return this number instead, or with 0 the number that it finds. Holds for the
// whole process; call it before anything asks Processors().
void SetProcessors(int64_t processors);

// Returns true if the CPU multiplies bfloat16 much faster than F32, which takes AMX: with AVX-512
// BF16 alone a product takes as long as in F32, or twice that.
bool HasAmxBFloat16();

}  // namespace linserve
