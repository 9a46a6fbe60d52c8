#pragma once

#include <unistd.h>

#include <utility>

namespace linserve {

// Owns a file descriptor; a negative number means that there is none.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    Close();
    value_ = std::exchange(other.value_, -1);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return value_; }

  // Closes the descriptor. Returns false if the system lost bytes that it had accepted before.
  bool Close() {
    const int value = std::exchange(value_, -1);
    return value < 0 || ::close(value) == 0;
  }

 private:
  int value_;
};

}  // namespace linserve
