#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace linserve {
namespace {

constexpr size_t kBytes = size_t{8} << 30;  // of addresses; pages come as they are used
constexpr size_t kAlignment = 512;          // as on GPUs

}  // namespace

c10::DeviceIndex& CurrentDevice() {
  thread_local c10::DeviceIndex current = 0;
  return current;
}

Arena& Arena::Get() {
  static auto* arena = new Arena;  // tensors outlive everything
  return *arena;
}

Arena::Arena()
    : begin_(static_cast<char*>(
          mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
      limit_(static_cast<int64_t>(kBytes)) {
  TORCH_CHECK(begin_ != MAP_FAILED, "no address space for the simulated device");
}

c10::DataPtr Arena::allocate(size_t bytes) {
  const Opened opened;
  const size_t size = std::max((bytes + kAlignment - 1) / kAlignment, size_t{1}) * kAlignment;
  const std::scoped_lock lock(mutex_);
  if (used_ + static_cast<int64_t>(size) > limit_) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "simulated out of memory: tried to allocate ", bytes,
                     " bytes, ", used_, " of ", limit_, " are in use");
  }
  char* address = nullptr;
  size_t granted = size;
  if (const auto found = free_.lower_bound(size); found != free_.end()) {
    granted = found->first;
    address = found->second;
    free_.erase(found);
  } else {
    TORCH_CHECK(next_ + size <= kBytes, "the simulated device's addresses are used up");
    address = begin_ + next_;
    next_ += size;
  }
  used_ += static_cast<int64_t>(granted);
  allocated_[address] = granted;
  std::memset(address, 0xFF, granted);
  return {address, address, &Free, c10::Device(c10::DeviceType::PrivateUse1, CurrentDevice())};
}

c10::DeleterFnPtr Arena::raw_deleter() const { return &Free; }

void Arena::copy_data(void* target, const void* source, size_t bytes) const {
  const Opened opened;
  default_copy_data(target, source, bytes);
}

bool Arena::Holds(const void* address) const {
  return address >= begin_ && address < begin_ + kBytes;
}

int64_t Arena::used() const {
  const std::scoped_lock lock(mutex_);
  return used_;
}

int64_t Arena::limit() const {
  const std::scoped_lock lock(mutex_);
  return limit_;
}

void Arena::SetLimit(int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  limit_ = bytes;
}

void Arena::Free(void* address) {
  Arena& arena = Get();
  const std::scoped_lock lock(arena.mutex_);
  const auto found = arena.allocated_.find(address);
  arena.used_ -= static_cast<int64_t>(found->second);
  arena.free_.emplace(found->second, static_cast<char*>(address));
  arena.allocated_.erase(found);
}

void Arena::Protect(int protection) const { mprotect(begin_, kBytes, protection); }

Arena::Opened::Opened() {
  Arena& arena = Get();
  const std::scoped_lock lock(arena.mutex_);
  if (arena.opened_++ == 0) arena.Protect(PROT_READ | PROT_WRITE);
}

Arena::Opened::~Opened() {
  Arena& arena = Get();
  const std::scoped_lock lock(arena.mutex_);
  if (--arena.opened_ == 0) arena.Protect(PROT_NONE);
}

}  // namespace linserve
