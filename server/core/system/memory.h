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

// Returns the most bytes of memory that a process, by its number, has had at once, shared libraries
// included; 0: there is no such process.
int64_t PeakResidentBytes(const std::string& process = "self");

// Gives back the memory of what is read from files alone and as it is there: the code of the
// program and of its libraries. It comes back as it runs. Most of what a start runs through,
// nothing runs again.
void GiveBackCode();

// Writes a size as "1.5 GiB", with a unit that fits.
std::string FormatBytes(double bytes);

}  // namespace linserve
