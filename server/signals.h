#pragma once

#include <functional>
#include <memory>

namespace linserve {

// The signals of a server: SIGINT and SIGTERM end it, SIGHUP reloads.
class Signals {
 public:
  // Blocks them. To be made before any other thread, which would get them otherwise.
  Signals();

  // From now on a thread waits for them. Until Ready(), while there is nothing to drain, the first
  // signal to end the server ends the process at once, and SIGHUP does nothing.
  void Watch();
  // `reload` is called for each SIGHUP until the server is to end.
  void Ready(std::function<void()> reload);

  // The first signal to end the server. A second one ends the process at once. Call once.
  int WaitForEnd();

 private:
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace linserve
