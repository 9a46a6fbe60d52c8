#pragma once

#include <malloc.h>

#include <vector>

namespace linserve {

// Says whether memory comes from glibc, and not from a sanitizer.
inline bool AllocatesByGlibc() {
  const std::vector<char> large(64 << 20);  // glibc maps it by itself
  return mallinfo2().hblks > 0;
}

}  // namespace linserve
