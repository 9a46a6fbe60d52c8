#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

#include "client/calls.h"

namespace linserve {

// "[=====>    ] 120/240  36.1/s"
std::string ProgressText(size_t done, size_t total, double seconds, size_t width = 30);

// What is happening to a sequence, and how far that is: "sending [=> ] 4096/262144  ...".
std::string ProgressText(const EmbedProgress& progress, double seconds);

// A line on standard error that is drawn anew, at most ten times a second, and erased at the end;
// nothing if standard error is no terminal. Thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool shown() const { return shown_; }
  // The time since the line was made.
  double seconds() const;
  // True if it is time to draw again.
  bool Due() const;
  void Draw(const std::string& text);
  void Erase();

 private:
  using Clock = std::chrono::steady_clock;

  const bool shown_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  Clock::time_point next_ = start_;
};

}  // namespace linserve
