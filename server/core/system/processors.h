#pragma once

#include <cstdint>
#include <string>

namespace linserve {

// Returns the number of processors that this process may use: its affinity, or the quota of its
// control groups if that is less, as a container's CPU limit is. At least 1.
int64_t Processors();

// Returns what the maker of the processors calls them, as "AMD EPYC 9B14 96-Core Processor"; empty
// if the system does not tell.
std::string ProcessorName();

// Makes Processors() return this number instead, or with 0 the number that it finds. Holds for the
// whole process; call it before anything asks Processors().
void SetProcessors(int64_t processors);

}  // namespace linserve
