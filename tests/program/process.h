#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace linserve {

// A program as a child process, its outputs captured. Killed when this goes out of scope.
class Process {
 public:
  // `command`: the program's path and arguments. `variables` join the environment, from which all
  // LINSERVE_* are removed.
  explicit Process(const std::vector<std::string>& command,
                   const std::map<std::string, std::string>& variables = {},
                   const std::string& standard_input = "");
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // Waits until the standard error holds `text`; false once the program has ended without it, or
  // after two minutes.
  bool WaitForError(const std::string& text);

  // Waits for the end: the exit code, or 128 and the number of the signal that ended it. A program
  // that does not end within two minutes is killed.
  int Wait();

  void Signal(int signal) const;

  std::string out() const;
  std::string err() const;

 private:
  // The text of one stream, as far as it has come.
  struct Captured {
    std::string text LINSERVE_GUARDED_BY(mutex_);
    bool ended LINSERVE_GUARDED_BY(mutex_) = false;
    std::thread reader;
  };

  void Capture(Captured& captured, int pipe);

  pid_t pid_ = -1;
  int code_ = -1;
  mutable Mutex mutex_;
  CondVar changed_;
  Captured out_;
  Captured err_;
};

}  // namespace linserve
