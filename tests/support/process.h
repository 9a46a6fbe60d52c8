#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/threads/mutex.h"

namespace linserve {

// Runs a program as a child process, its outputs captured. It is killed when this goes out of
// scope.
class Process {
 public:
  // Starts `command`, the program's path and arguments. `variables` join the environment, from
  // which all LINSERVE_* and OMP_* are removed.
  explicit Process(const std::vector<std::string>& command,
                   const std::map<std::string, std::string>& variables = {},
                   const std::string& standard_input = "");
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // Waits until the standard output, or the standard error, holds `text`. Returns false once the
  // program has ended without it, or after two minutes.
  bool WaitForOut(const std::string& text);
  bool WaitForError(const std::string& text);

  // Waits for the end, and returns the exit code, or 128 and the number of the signal that ended
  // it. A program that does not end within two minutes is killed.
  int Wait();

  void Signal(int signal) const;

  pid_t pid() const { return pid_; }

  std::string out() const;
  std::string err() const;

 private:
  using Time = std::chrono::steady_clock::time_point;

  // Holds the text of one stream, as far as it has come.
  class Captured {
   public:
    // Reads the pipe, and closes it, on a thread of its own.
    void Start(int pipe);
    void Join() { reader_.join(); }

    // Waits for `text`; returns false once the stream has ended without it, or at `limit`.
    bool WaitFor(const std::string& text, Time limit);
    // Waits for the stream's end; returns false if it has not come by `limit`.
    bool WaitForEnd(Time limit);
    std::string text() const;

   private:
    void Read(int pipe);

    std::thread reader_;
    mutable Mutex mutex_;
    CondVar changed_;
    std::string text_ ABSL_GUARDED_BY(mutex_);
    bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  };

  pid_t pid_ = -1;
  int code_ = -1;
  Captured out_;
  Captured err_;
};

}  // namespace linserve
