#include "client/terminal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/threads/mutex.h"

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

std::string ProgressText(const EmbedProgress& progress, double seconds) {
  const auto text = [&](const char* what, int64_t done) {
    return std::string(what) + " " +
           ProgressText(static_cast<size_t>(done), static_cast<size_t>(progress.rows), seconds);
  };
  if (progress.rows_received > 0) return text("receiving", progress.rows_received);
  if (!progress.computed) return text("sending", progress.rows_sent);
  const ItemProgress& computed = *progress.computed;
  const int64_t layers = std::max<int64_t>(computed.layers, 1);
  const double done = (static_cast<double>(computed.layers_done) +
                       static_cast<double>(computed.rows_done) /
                           static_cast<double>(std::max<int64_t>(computed.rows, 1))) /
                      static_cast<double>(layers);
  return text("computing", static_cast<int64_t>(done * static_cast<double>(progress.rows))) +
         "  layer " + std::to_string(std::min(computed.layers_done + 1, layers)) + " of " +
         std::to_string(layers);
}

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { Erase(); }

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool ProgressLine::Due() const {
  const MutexLock lock(mutex_);
  return shown_ && Clock::now() >= next_;
}

void ProgressLine::Draw(const std::string& text) {
  if (!shown_) return;
  const MutexLock lock(mutex_);
  next_ = Clock::now() + std::chrono::milliseconds(100);
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

void ProgressLine::Erase() {
  if (!shown_) return;
  const MutexLock lock(mutex_);
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace linserve
