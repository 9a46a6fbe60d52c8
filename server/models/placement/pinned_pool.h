#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "core/threads/mutex.h"

namespace linserve {

// Holds the host's memory that a device copies from and to by itself, in blocks that are used again
// and again. To give a block back asks the device for nothing, since results are freed on any
// thread, and after the device was lost, too. (LibTorch's own pool of such memory records an event
// then, whose failure ends the process.)
class PinnedPool {
 public:
  // Returns the pool of a device, which is never destroyed.
  static PinnedPool& Of(const c10::Device& device);

  explicit PinnedPool(const c10::Device& device) : device_(device) {}

  // Gives memory of at least so many bytes. Once its last owner is gone, others get it when the
  // copies are done that were asked for on these two streams until then. What LibTorch throws
  // passes through. Thread-safe, as are the owners.
  std::shared_ptr<void> Allocate(size_t bytes, const c10::Stream& in, const c10::Stream& out);

 private:
  struct Block;

  Block* TakeFree(size_t size);  // nullptr: there is none
  void GiveBack(Block* block) noexcept;

  const c10::Device device_;
  Mutex mutex_;
  Block* given_back_ ABSL_GUARDED_BY(mutex_) = nullptr;                 // the first one of a list
  std::vector<Block*> being_copied_ ABSL_GUARDED_BY(mutex_);            // perhaps still
  std::map<size_t, std::vector<Block*>> free_ ABSL_GUARDED_BY(mutex_);  // by size
};

}  // namespace linserve
