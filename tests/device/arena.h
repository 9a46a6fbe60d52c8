#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace linserve {

// Returns the device that the calling thread uses.
c10::DeviceIndex& CurrentDevice();

// Holds the simulated devices' memory: pages that fault when they are touched, except those that
// the device computes with at that moment. What is allocated is full of NaNs. Thread-safe.
class Arena : public c10::Allocator {
 public:
  static Arena& Get();

  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* target, const void* source, size_t bytes) const override;

  bool Holds(const void* address) const;

  // Opens memory for as long as this lives: it is held while the device computes.
  class Opened {
   public:
    Opened() = default;
    ~Opened();
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    void Add(const void* address);  // opens what was allocated around the address
    void AddAll();

   private:
    std::vector<std::pair<char*, uint64_t>> opened_;  // with their serial numbers
  };

  int64_t used() const;
  int64_t limit() const;
  void SetLimit(int64_t bytes);  // past it, c10::OutOfMemoryError is thrown

 private:
  struct Block {
    size_t bytes;     // which may be more than were asked for
    int64_t counted;  // as used: whole pages of what was asked for
    // Tells it from others that were at its address before, and may have been open when they went.
    uint64_t serial;
    int opened = 0;
  };

  Arena();
  static void Free(void* address);

  mutable std::mutex mutex_;
  char* begin_;
  size_t next_ = 0;  // from here on nothing was handed out yet
  int64_t used_ = 0;
  uint64_t last_serial_ = 0;
  int64_t limit_;
  std::multimap<size_t, char*> free_;  // by size
  std::map<char*, Block> blocks_;
};

}  // namespace linserve
