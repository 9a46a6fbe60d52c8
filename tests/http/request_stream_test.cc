#include "http/request_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/descriptor.h"

namespace linserve {
namespace {

using std::chrono::milliseconds;

// The two ends of a connection: ours does not block.
struct Ends {
  Ends() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    EXPECT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  }
  std::array<int, 2> ends{-1, -1};
};

class RequestStreamTest : public ::testing::Test {
 protected:
  // Answers until that fails.
  void AnswerWithoutEnd(const HttpLimits& limits) {
    RequestStream stream(connection_, limits, 1 << 20);
    const std::string piece(1 << 16, 'a');
    while (stream.write(piece.data(), piece.size()) > 0) {
    }
    EXPECT_TRUE(stream.failed());
    EXPECT_EQ(stream.write("a", 1), -1);
  }

  const Ends ends_;
  Connection connection_{ends_.ends[0]};
  const Descriptor caller_{ends_.ends[1]};
};

TEST_F(RequestStreamTest, AnAnswerThatNobodyReadsIsGivenUp) {
  AnswerWithoutEnd({.stall = milliseconds(100)});
}

TEST_F(RequestStreamTest, AnAnswerThatIsReadTooSlowlyIsGivenUp) {
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    std::array<char, 64> piece{};
    while (!ended) {
      ::recv(caller_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  AnswerWithoutEnd({.patience = milliseconds(100), .bytes_per_second = 1 << 30});
  ended = true;
  reader.join();
}

}  // namespace
}  // namespace linserve
