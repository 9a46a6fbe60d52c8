#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace linserve {

// The device that the calling thread uses.
c10::DeviceIndex& CurrentDevice();

// The simulated devices' memory: pages that fault when the host touches them, except while the
// device itself computes. What is allocated is full of NaNs. Thread-safe.
class Arena : public c10::Allocator {
 public:
  static Arena& Get();

  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* target, const void* source, size_t bytes) const override;

  bool Holds(const void* address) const;

  // Lets the host in as long as one of these lives: to be held while the device computes.
  class Opened {
   public:
    Opened();
    ~Opened();
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
  };

  int64_t used() const;
  int64_t limit() const;
  void SetLimit(int64_t bytes);  // past it: c10::OutOfMemoryError

 private:
  Arena();
  static void Free(void* address);
  void Protect(int protection) const;

  mutable std::mutex mutex_;
  char* begin_;
  size_t next_ = 0;  // never handed out yet
  int opened_ = 0;
  int64_t used_ = 0;
  int64_t limit_;
  std::multimap<size_t, char*> free_;  // by size
  std::map<void*, size_t> allocated_;
};

}  // namespace linserve
