#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "client/library/calls.h"
#include "core/threads/mutex.h"

namespace linserve {

// Writes "[=====>    ] 120/240  36.1/s".
std::string ProgressText(size_t done, size_t total, double seconds, size_t width = 30);

// Says what is happening to a sequence, and how far that is: "sending [=> ] 4096/262144  ...".
std::string ProgressText(const EmbedProgress& progress, double seconds);

// Draws a line on standard error anew, at most ten times a second, and erases it at the end; it
// draws nothing if standard error is no terminal. Thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool shown() const { return shown_; }
  // Returns the time since the line was made.
  double seconds() const;
  // Returns true if it is time to draw again.
  bool Due() const;
  void Draw(const std::string& text);
  void Erase();

 private:
  using Clock = std::chrono::steady_clock;

  const bool shown_;
  const Clock::time_point start_ = Clock::now();
  mutable Mutex mutex_;
  Clock::time_point next_ ABSL_GUARDED_BY(mutex_) = start_;
};

}  // namespace linserve
