#include "core/system/heap.h"

#include <malloc.h>

#include <atomic>

namespace linserve {
namespace {

constexpr int kMostThatGlibcTakes = 32 << 20;  // larger buffers are mapped one by one
constexpr int kLargeWhileLoading = 1 << 20;

std::atomic<int> loads = 0;

}  // namespace

void KeepFreedPages() {
  constexpr int kKept = 128 << 20;
  constexpr int kArenas = 4;
  mallopt(M_MMAP_THRESHOLD, kMostThatGlibcTakes);
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_ARENA_MAX, kArenas);
}

LoadingHeap::LoadingHeap() {
  if (++loads == 1) mallopt(M_MMAP_THRESHOLD, kLargeWhileLoading);
}

LoadingHeap::~LoadingHeap() {
  // A load that begins at this moment may go without: it takes more memory, and nothing worse.
  if (--loads == 0) mallopt(M_MMAP_THRESHOLD, kMostThatGlibcTakes);
}

}  // namespace linserve
