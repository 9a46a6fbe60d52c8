#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "core/system/heap.h"
#include "core/system/standard_output.h"
#include "core/threads/lock_cycles.h"
#include "program/commands.h"

namespace linserve {

namespace {

constexpr size_t kMostVariables = 4096;

bool Sets(const char* variable, const char* name) {
  return std::strncmp(variable, name, std::strlen(name)) == 0;
}

// Lets OpenMP's threads spin for about half a millisecond. By default they spin for as long as they
// wait for each other, which costs a product many times its own time as soon as anything else wants
// a processor. Without any spinning, waking them costs a short product as much as it takes. libgomp
// reads the variables when it is initialized, so the program starts once more with them.
void SpinBriefly(int /*count*/, char** arguments, char** variables) {
  static char* more[kMostVariables + 3];
  static char wait[] = "OMP_WAIT_POLICY=passive";
  static char spin[] = "GOMP_SPINCOUNT=10000";
  size_t count = 0;
  for (; variables[count] != nullptr; ++count) {
    if (count == kMostVariables || Sets(variables[count], "OMP_WAIT_POLICY=")) return;
    more[count] = variables[count];
  }
  more[count] = wait;
  if (std::none_of(more, more + count, [](char* one) { return Sets(one, "GOMP_SPINCOUNT="); })) {
    more[count + 1] = spin;
  }
  // The program is run by its path, so that the process keeps its name; a failure leaves the
  // default.
  static char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  // NOLINTNEXTLINE(clang-analyzer-optin.taint.GenericTaint): it was given these arguments itself
  if (length > 0) execve(program, arguments, more);
}

// It is done before the libraries are initialized, since LibTorch takes a quarter of a second for
// that. So early nothing of C++'s library can be used that allocates memory.
[[gnu::section(".preinit_array"), gnu::used]] constexpr auto* kBeforeLibraries = &SpinBriefly;

int Run(int argc, char** argv) {
  try {
    return FinishOutput("linserve", RunProgram(argc, argv));
  } catch (const std::exception& error) {
    return Fail(error.what());
  }
}

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) {
  linserve::KeepFreedPages();
  linserve::OverlookLockCycles();
  const int code = linserve::Run(argc, argv);
#ifdef NDEBUG
  // LibTorch would take its operators apart one by one, for a tenth of a second. Where sanitizers
  // look for leaks, it must.
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}
