#pragma once

#include <cstdint>
#include <string>

namespace linserve {

// Returns the bytes of memory that this process may use: the machine's, or the limit of its control
// groups if that is less, as a container's memory limit is.
int64_t MemoryBytes();

// Returns the bytes of memory that this process has now, without those of files, which the system
// takes back when it needs them; 0: nobody knows.
int64_t AnonymousBytes();

// Returns the most bytes of memory that this process has had at once, shared libraries included.
int64_t PeakResidentBytes();

// Gives back the pages of the program's code and of that of its libraries, which come back from
// their files as they run. Most of what a start runs through, nothing runs again. While a debugger
// looks on, nothing happens, since its breakpoints are in these pages.
void GiveBackCode();

// Writes a size as "1.5 GiB", with a unit that fits.
std::string FormatBytes(double bytes);

}  // namespace linserve
