#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>

#include "core/threads/lock_cycles.h"
#include "program/commands.h"

namespace linserve {

namespace {

// Lets OpenMP's threads spin for about half a millisecond. By default they spin for as long as they
// wait for each other, which costs a product many times its own time as soon as anything else wants
// a processor. Without any spinning, waking them costs a short product as much as it takes. libgomp
// reads the variables when it is loaded, before main(), so the program starts once more with them.
void SpinBriefly(char** argv) {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs yet
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  setenv("GOMP_SPINCOUNT", "10000", /*overwrite=*/0);
  // NOLINTEND(concurrency-mt-unsafe)
  // The program is run by its path, so that the process keeps its name; a failure leaves the
  // default.
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(program.c_str(), argv);
}

// Lets glibc keep freed pages. A batch's buffers are freed before the next one asks for the same.
// By default glibc gives their pages back in between, and the kernel clears new ones: up to two
// faults a token, a fifth of the time of a long sequence. So each arena keeps them until more is
// free; and since threads that only carry messages keep theirs, too, they share few arenas.
void KeepFreedPages() {
  constexpr int kKept = 128 << 20;
  constexpr int kArenas = 4;
  constexpr int kMostThatGlibcTakes = 32 << 20;  // larger buffers are mapped one by one
  mallopt(M_MMAP_THRESHOLD, kMostThatGlibcTakes);
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_ARENA_MAX, kArenas);
}

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) {
  linserve::SpinBriefly(argv);
  linserve::KeepFreedPages();
  linserve::OverlookLockCycles();
  try {
    return linserve::RunProgram(argc, argv);
  } catch (const std::exception& error) {
    return linserve::Fail(error.what());
  }
}
