#include "models/placement/pinned_pool.h"

#include <c10/core/Event.h>

#include <algorithm>
#include <bit>

#include "attention/device/device_plugin.h"

namespace linserve {
namespace {

constexpr size_t kSmallest = 4096;

}  // namespace

// Blocks are never freed, as the memory is not.
struct PinnedPool::Block {
  Block(void* memory, size_t bytes, const c10::Stream& reads, const c10::Stream& writes)
      : data(memory),
        size(bytes),
        in(reads),
        out(writes),
        read(reads.device_type()),
        written(writes.device_type()) {}

  void* const data;
  const size_t size;
  c10::Stream in;
  c10::Stream out;
  // These come after the last copies on the streams.
  c10::Event read;
  c10::Event written;
  Block* next = nullptr;
};

PinnedPool& PinnedPool::Of(const c10::Device& device) {
  static Mutex mutex;
  static auto* pools = new std::map<std::pair<c10::DeviceType, c10::DeviceIndex>, PinnedPool*>;
  MutexLock lock(mutex);
  PinnedPool*& pool = (*pools)[{device.type(), device.index()}];
  if (pool == nullptr) pool = new PinnedPool(device);
  return *pool;
}

std::shared_ptr<void> PinnedPool::Allocate(size_t bytes, const c10::Stream& in,
                                           const c10::Stream& out) {
  const size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  Block* block = TakeFree(size);
  if (block == nullptr) {
    block = new Block(FindDevicePlugin(device_.type())->pin(size), size, in, out);
  }
  block->in = in;
  block->out = out;
  return {block->data, [this, block](void*) { GiveBack(block); }};
}

PinnedPool::Block* PinnedPool::TakeFree(size_t size) {
  MutexLock lock(mutex_);
  while (given_back_ != nullptr) {
    Block* block = given_back_;
    block->read.record(block->in);
    block->written.record(block->out);
    being_copied_.push_back(block);
    given_back_ = block->next;
  }
  // One by one, since a query may throw: then each block is still in one place.
  for (size_t i = 0; i < being_copied_.size();) {
    Block* const block = being_copied_[i];
    if (!block->read.query() || !block->written.query()) {
      ++i;
      continue;
    }
    free_[block->size].push_back(block);
    being_copied_[i] = being_copied_.back();
    being_copied_.pop_back();
  }
  std::vector<Block*>& free = free_[size];
  if (free.empty()) return nullptr;
  Block* block = free.back();
  free.pop_back();
  return block;
}

void PinnedPool::GiveBack(Block* block) noexcept {
  MutexLock lock(mutex_);
  block->next = given_back_;
  given_back_ = block;
}

}  // namespace linserve
