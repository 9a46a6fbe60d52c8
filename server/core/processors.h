#pragma once

#include <cstdint>

namespace linserve {

// Processors that this process may use: its affinity, and the quota of its cgroup (v2) if that is
// less, as a container's CPU limit is. At least 1.
int64_t Processors();

// Makes Processors() give so many instead, or with 0 those that it finds; for the whole process,
// before anything asks for them.
void SetProcessors(int64_t processors);

// True if the CPU multiplies bfloat16 much faster than F32, which takes AMX: with AVX-512 BF16
// alone a product takes as long as in F32, or twice that.
bool HasAmxBFloat16();

}  // namespace linserve
