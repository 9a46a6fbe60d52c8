#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace linserve {

// Takes the signals of a server: SIGINT and SIGTERM end it, SIGHUP reloads.
class Signals {
 public:
  // Blocks the signals. It must be made before any other thread, which would get them otherwise.
  Signals();

  // Starts a thread that waits for the signals. Until Ready(), while there is nothing to drain, the
  // first signal to end the server ends the process at once, and SIGHUP does nothing.
  void Watch();
  // `reload` is called for each SIGHUP until the server is to end, on a thread of its own; signals
  // that come meanwhile are one. From then on the process has `longest` to end; what has not ended
  // by then, because something hangs, is ended.
  void Ready(std::function<void()> reload, std::chrono::nanoseconds longest);

  // Gives the process another time to end.
  void AllowToEnd(std::chrono::nanoseconds longest);

  // Waits for the first signal to end the server, and returns it. A second one ends the process at
  // once, but for a SIGTERM within two seconds: supervisors send one to a process, and one to all
  // of its group. Call it once.
  int WaitForEnd();

  // Waits for a reload that has not ended yet, and returns whether it has by then. What it uses
  // must not go before. REQUIRES: WaitForEnd() has returned.
  bool WaitForReload(std::chrono::nanoseconds longest);

 private:
  struct State;

  static void Reload(State& state);

  std::shared_ptr<State> state_;
};

}  // namespace linserve
