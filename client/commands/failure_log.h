#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "client/library/calls.h"

namespace linserve {

// Counts the sequences that failed, and tells the first of them on standard error.
class FailureLog {
 public:
  // Says whether the next failure is told.
  bool tells() const { return count_ < kTold; }
  size_t count() const { return count_; }

  void Add(const std::string& sequence, const absl::Status& fault) {
    if (tells()) {
      std::fprintf(stderr, "linserve-client: sequence %s: %s\n", sequence.c_str(),
                   fault.ToString().c_str());
    }
    ++count_;
  }

  // Tells how many more there were, and returns the exit code.
  int Finish() const {
    if (count_ > kTold)
      std::fprintf(stderr, "linserve-client: and %zu more failed\n", count_ - kTold);
    return count_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  static constexpr size_t kTold = 20;

  size_t count_ = 0;
};

}  // namespace linserve
