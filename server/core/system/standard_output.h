#pragma once

namespace linserve {

// Writes what standard output still holds, and returns the program's exit code: `code`, or 1 where
// not all could be written, which `program` then says.
int FinishOutput(const char* program, int code);

}  // namespace linserve
