#include "core/system/heap.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "core/system/glibc_heap.h"

namespace linserve {
namespace {

// How many blocks are mapped one by one.
size_t Mapped() { return mallinfo2().hblks; }

struct Free {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<void, Free>;

// Says whether any of many blocks is mapped by itself: the first ones may lie where others were
// freed.
bool MapsLargeBlocks() {
  const size_t before = Mapped();
  std::vector<Block> blocks;
  while (blocks.size() < 200 && Mapped() == before) blocks.emplace_back(std::malloc(4 << 20));
  return Mapped() > before;
}

TEST(LoadingHeap, MapsLargeBlocksWhileALoadGoesOn) {
  if (!AllocatesByGlibc()) GTEST_SKIP() << "this allocator is not glibc's";
  KeepFreedPages();
  EXPECT_FALSE(MapsLargeBlocks());
  {
    const LoadingHeap outer;
    {
      const LoadingHeap inner;
      EXPECT_TRUE(MapsLargeBlocks());
    }
    EXPECT_TRUE(MapsLargeBlocks());
  }
  EXPECT_FALSE(MapsLargeBlocks());
}

}  // namespace
}  // namespace linserve
