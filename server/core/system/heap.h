#pragma once

namespace linserve {

// These say how glibc keeps the memory that the process frees.

// Lets glibc keep freed pages. A batch's buffers are freed before the next one asks for the same.
// By default glibc gives their pages back in between, and the kernel clears new ones: up to two
// faults a token, a fifth of the time of a long sequence. So each arena keeps them until more is
// free; and since threads that only carry messages keep theirs, too, they share few arenas. To be
// called once, when the program starts.
void KeepFreedPages();

// While one lives, blocks of a megabyte and more are mapped one by one, of all threads. What a load
// frees then goes back at once. Elsewhere it would leave holes between what is kept, and the next
// weights would not fit into them.
class LoadingHeap {
 public:
  LoadingHeap();
  ~LoadingHeap();
  LoadingHeap(const LoadingHeap&) = delete;
  LoadingHeap& operator=(const LoadingHeap&) = delete;
};

}  // namespace linserve
