#include "support/fakes/failing_allocations.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace linserve {
namespace {

std::atomic<size_t> least_to_fail = SIZE_MAX;
std::atomic<size_t> failures = 0;

void* Allocate(size_t size) noexcept {
  if (size >= least_to_fail) {
    ++failures;
    return nullptr;
  }
  return std::malloc(size == 0 ? 1 : size);
}

void* AllocateOrThrow(size_t size) {
  void* memory = Allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

FailingAllocations::FailingAllocations(size_t least) {
  failures = 0;
  least_to_fail = least;
}

FailingAllocations::~FailingAllocations() { least_to_fail = SIZE_MAX; }

size_t FailingAllocations::failed() const { return failures; }

}  // namespace linserve

void* operator new(size_t size) { return linserve::AllocateOrThrow(size); }
void* operator new[](size_t size) { return linserve::AllocateOrThrow(size); }
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return linserve::Allocate(size);
}
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return linserve::Allocate(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t /*size*/) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }
