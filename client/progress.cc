#include "client/progress.h"

#include <unistd.h>

#include <cstdio>

namespace linserve {

std::string ProgressText(size_t done, size_t total, double seconds, size_t width) {
  const size_t filled = total == 0 ? width : done * width / total;
  std::string bar(filled, '=');
  if (filled < width) bar += '>';
  bar.resize(width, ' ');
  char rate[32];
  std::snprintf(rate, sizeof(rate), "%.1f/s",
                seconds > 0 ? static_cast<double>(done) / seconds : 0.0);
  return "[" + bar + "] " + std::to_string(done) + "/" + std::to_string(total) + "  " + rate;
}

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { Erase(); }

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool ProgressLine::Due() const { return shown_ && Clock::now() >= next_; }

void ProgressLine::Draw(const std::string& text) {
  if (!shown_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

void ProgressLine::Erase() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace linserve
