#include "core/system/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace linserve {

int FinishOutput(const char* program, int code) {
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written) return code;
  // A reader who has enough, as `head` does, closes the pipe.
  if (errno != EPIPE) {
    std::fprintf(stderr, "%s: cannot write to standard output%s%s\n", program,
                 errno == 0 ? "" : ": ", errno == 0 ? "" : std::strerror(errno));
  }
  return code == EXIT_SUCCESS ? EXIT_FAILURE : code;
}

}  // namespace linserve
