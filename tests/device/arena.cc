#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace linserve {
namespace {

constexpr size_t kBytes = size_t{64} << 30;  // bytes of addresses; pages come as they are used
constexpr size_t kPage = 4096;

// Protects what is added, neighbours by one call of the system: a kernel opens hundreds of blocks.
class Protection {
 public:
  explicit Protection(int allowed) : allowed_(allowed) {}
  ~Protection() { Apply(); }
  Protection(const Protection&) = delete;
  Protection& operator=(const Protection&) = delete;

  void Add(char* begin, size_t bytes) {
    if (begin != end_) {
      Apply();
      begin_ = begin;
    }
    end_ = begin + bytes;
  }

 private:
  void Apply() {
    if (begin_ != end_) mprotect(begin_, static_cast<size_t>(end_ - begin_), allowed_);
  }

  int allowed_;
  char* begin_ = nullptr;
  char* end_ = nullptr;
};

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
  const size_t size = std::max((bytes + kPage - 1) / kPage, size_t{1}) * kPage;
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
  used_ += static_cast<int64_t>(size);
  blocks_[address] = {granted, static_cast<int64_t>(size), ++last_serial_};
  mprotect(address, granted, PROT_READ | PROT_WRITE);
  std::memset(address, 0xFF, granted);
  mprotect(address, granted, PROT_NONE);
  return {address, address, &Free, c10::Device(c10::DeviceType::PrivateUse1, CurrentDevice())};
}

c10::DeleterFnPtr Arena::raw_deleter() const { return &Free; }

void Arena::copy_data(void* target, const void* source, size_t bytes) const {
  Opened opened;
  opened.Add(target);
  opened.Add(source);
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
  const auto found = arena.blocks_.find(static_cast<char*>(address));
  const size_t bytes = found->second.bytes;
  arena.used_ -= found->second.counted;
  mprotect(address, bytes, PROT_NONE);
  arena.free_.emplace(bytes, found->first);
  arena.blocks_.erase(found);
}

void Arena::Opened::Add(const void* address) {
  Arena& arena = Get();
  if (!arena.Holds(address)) return;
  const std::scoped_lock lock(arena.mutex_);
  const auto after = arena.blocks_.upper_bound(static_cast<char*>(const_cast<void*>(address)));
  if (after == arena.blocks_.begin()) return;
  auto& [begin, block] = *std::prev(after);
  if (block.opened++ == 0) mprotect(begin, block.bytes, PROT_READ | PROT_WRITE);
  opened_.emplace_back(begin, block.serial);
}

void Arena::Opened::AddAll() {
  Arena& arena = Get();
  const std::scoped_lock lock(arena.mutex_);
  Protection opens(PROT_READ | PROT_WRITE);
  for (auto& [begin, block] : arena.blocks_) {
    if (block.opened++ == 0) opens.Add(begin, block.bytes);
    opened_.emplace_back(begin, block.serial);
  }
}

Arena::Opened::~Opened() {
  Arena& arena = Get();
  const std::scoped_lock lock(arena.mutex_);
  Protection closes(PROT_NONE);
  for (const auto& [begin, serial] : opened_) {
    const auto block = arena.blocks_.find(begin);
    // A block that is missing here was freed meanwhile, and another thread may compute with one
    // that has its address now.
    if (block == arena.blocks_.end() || block->second.serial != serial) continue;
    if (--block->second.opened == 0) closes.Add(begin, block->second.bytes);
  }
}

}  // namespace linserve
