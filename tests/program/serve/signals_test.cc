#include "program/serve/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "support/wait_until.h"

namespace linserve {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Each test's body runs in a process of its own, which it is to end.
class SignalsDeathTest : public testing::Test {
 protected:
  SignalsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Begins to end, by this signal.
  static void BeginToEnd(Signals& signals, int signal, std::chrono::nanoseconds longest) {
    signals.Watch();
    signals.Ready([] {}, longest);
    Send(signal);
    signals.WaitForEnd();
  }
  // Begins to end while a reload goes on, and returns the signal that was heard.
  static int EndDuring(Signals& signals, const std::function<void()>& reload) {
    const auto begun = std::make_shared<std::atomic<bool>>(false);
    signals.Watch();
    signals.Ready(
        [begun, reload] {
          *begun = true;
          reload();
        },
        hours(1));
    Send(SIGHUP);
    while (!*begun) std::this_thread::yield();
    Send(SIGTERM);
    return signals.WaitForEnd();
  }
  static void Send(int signal) { ::kill(::getpid(), signal); }
  [[noreturn]] static void Hang() {
    while (true) ::pause();
  }
};

TEST_F(SignalsDeathTest, EndAProcessThatHangs) {
  EXPECT_EXIT(
      {
        Signals signals;
        BeginToEnd(signals, SIGTERM, milliseconds(50));
        Hang();
      },
      testing::ExitedWithCode(1), "did not end in time");
}

TEST_F(SignalsDeathTest, EndAProcessWhoseLogNobodyReads) {
  EXPECT_EXIT(
      {
        Signals signals;
        int log[2] = {};
        if (::pipe(log) != 0) ::_exit(2);
        ::fcntl(log[1], F_SETFL, O_NONBLOCK);
        while (::write(log[1], "x", 1) == 1) {
        }
        ::fcntl(log[1], F_SETFL, 0);
        ::dup2(log[1], STDERR_FILENO);
        BeginToEnd(signals, SIGTERM, milliseconds(50));
        Hang();
      },
      testing::KilledBySignal(SIGALRM), "");
}

TEST_F(SignalsDeathTest, TakeASecondSigtermForTheSameWithinTwoSeconds) {
  EXPECT_EXIT(
      {
        Signals signals;
        BeginToEnd(signals, SIGTERM, hours(1));
        for (int i = 0; i < 20; ++i) {
          Send(SIGTERM);
          std::this_thread::sleep_for(milliseconds(10));
        }
        ::_exit(7);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(SignalsDeathTest, EndTheProcessAtOnceByASigtermAfterThat) {
  EXPECT_EXIT(
      {
        Signals signals;
        BeginToEnd(signals, SIGTERM, hours(1));
        const auto begun = std::chrono::steady_clock::now();
        (void)WaitUntil([&] {
          Send(SIGTERM);
          return std::chrono::steady_clock::now() > begun + std::chrono::seconds(10);
        });
        ::_exit(7);
      },
      testing::ExitedWithCode(128 + SIGTERM), "second signal");
}

TEST_F(SignalsDeathTest, EndTheProcessAtOnceByASecondSigint) {
  for (const int first : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          Signals signals;
          BeginToEnd(signals, first, hours(1));
          Send(SIGINT);
          Hang();
        },
        testing::ExitedWithCode(128 + SIGINT), "second signal");
  }
}

TEST_F(SignalsDeathTest, GoOnAfterAReloadThatFails) {
  EXPECT_EXIT(
      {
        Signals signals;
        signals.Watch();
        std::atomic<int> begun = 0;
        signals.Ready(
            [&] {
              ++begun;
              throw std::bad_alloc();
            },
            hours(1));
        for (int i = 1; i <= 2; ++i) {
          Send(SIGHUP);
          while (begun < i) std::this_thread::yield();
        }
        Send(SIGTERM);
        ::_exit(signals.WaitForEnd() == SIGTERM && signals.WaitForReload(hours(1)) ? 7 : 8);
      },
      testing::ExitedWithCode(7), "the reload failed");
}

TEST_F(SignalsDeathTest, EndTheServerWhileAReloadHangs) {
  EXPECT_EXIT(
      {
        Signals signals;
        const bool heard = EndDuring(signals, [] { Hang(); }) == SIGTERM;
        ::_exit(heard && !signals.WaitForReload(milliseconds(1)) ? 7 : 8);
      },
      testing::ExitedWithCode(7), "a reload hangs");
}

TEST_F(SignalsDeathTest, WaitForAReloadThatEnds) {
  EXPECT_EXIT(
      {
        Signals signals;
        std::atomic<bool> may_end = false;
        std::atomic<bool> ended = false;
        EndDuring(signals, [&] {
          while (!may_end) std::this_thread::yield();
          ended = true;
        });
        may_end = true;
        ::_exit(signals.WaitForReload(hours(1)) && ended ? 7 : 8);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace linserve
