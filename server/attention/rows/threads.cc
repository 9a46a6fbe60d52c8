#include "attention/rows/threads.h"

#include "attention/rows/aten.h"

namespace linserve {
namespace {

void SetThreads(int threads) {
  if (threads != at::get_num_threads()) at::set_num_threads(threads);
}

}  // namespace

ThreadsScope::ThreadsScope(int threads) : before_(at::get_num_threads()) { SetThreads(threads); }

ThreadsScope::~ThreadsScope() { SetThreads(before_); }

void OnThreads(int64_t count, const std::function<void(LoopTurns& turns)>& run) {
  const int threads = at::get_num_threads();
  SideBySide(count, threads, [&](LoopTurns& turns) {
    const ThreadsScope own(count == 1 ? threads : 1);
    const c10::InferenceMode no_autograd;
    run(turns);
  });
}

}  // namespace linserve
