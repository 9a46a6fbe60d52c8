#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/kernels/lanes.h"

namespace linserve::cuda {

// These functions load and store several neighbouring numbers as whole words, of 16 bytes if there
// are so many. Addresses are multiples of the words. (What is copied through a pointer to numbers
// of 16 bits may become a load or store for each byte.)

template <typename T, int kCount>
struct Vector {
  T values[kCount];
};

#if defined(__CUDACC__)
template <typename T, int kCount, int kBytes = kCount * sizeof(T)>
using WordFor =
    std::conditional_t<kBytes >= 16, uint4, std::conditional_t<kBytes == 8, uint2, uint32_t>>;

// The compiler would take an ordinary store of so many bytes apart now and then.
LINSERVE_KERNEL void StoreWord(uint4* to, const uint4& word) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
               : "memory");
}
LINSERVE_KERNEL void StoreWord(uint2* to, const uint2& word) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(word.x),
               "r"(word.y)
               : "memory");
}
#endif

template <int kCount, typename T>
LINSERVE_KERNEL Vector<T, kCount> LoadVector(const T* from) {
  Vector<T, kCount> vector;
#if defined(__CUDACC__)
  using Word = WordFor<T, kCount>;
  Word words[sizeof(vector) / sizeof(Word)];
  LINSERVE_UNROLL
  for (int i = 0; i < static_cast<int>(sizeof(vector) / sizeof(Word)); ++i) {
    words[i] = reinterpret_cast<const Word*>(from)[i];
  }
  memcpy(&vector, words, sizeof(vector));
#else
  std::memcpy(&vector, from, sizeof(vector));
#endif
  return vector;
}

// Stores to global memory. REQUIRES: at least 8 bytes.
template <typename T, int kCount>
LINSERVE_KERNEL void StoreVector(T* to, const Vector<T, kCount>& vector) {
#if defined(__CUDACC__)
  using Word = WordFor<T, kCount>;
  Word words[sizeof(vector) / sizeof(Word)];
  memcpy(words, &vector, sizeof(vector));
  LINSERVE_UNROLL
  for (int i = 0; i < static_cast<int>(sizeof(vector) / sizeof(Word)); ++i) {
    StoreWord(reinterpret_cast<Word*>(to) + i, words[i]);
  }
#else
  std::memcpy(to, &vector, sizeof(vector));
#endif
}

// Stores to shared memory.
template <typename T, int kCount>
LINSERVE_KERNEL void PutVector(T* to, const Vector<T, kCount>& vector) {
#if defined(__CUDACC__)
  using Word = WordFor<T, kCount>;
  Word words[sizeof(vector) / sizeof(Word)];
  memcpy(words, &vector, sizeof(vector));
  LINSERVE_UNROLL
  for (int i = 0; i < static_cast<int>(sizeof(vector) / sizeof(Word)); ++i) {
    reinterpret_cast<Word*>(to)[i] = words[i];
  }
#else
  std::memcpy(to, &vector, sizeof(vector));
#endif
}

}  // namespace linserve::cuda
