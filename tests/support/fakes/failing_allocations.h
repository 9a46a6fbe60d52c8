#pragma once

#include <cstddef>

namespace linserve {

// While one of these lives, operator new has no memory for anything of so many bytes or more.
class FailingAllocations {
 public:
  explicit FailingAllocations(size_t least);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  size_t failed() const;  // how many allocations have failed since it was made
};

}  // namespace linserve
