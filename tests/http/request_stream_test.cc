#include "http/request_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "core/files/descriptor.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

using std::chrono::milliseconds;

// These are the two ends of a connection: ours does not block.
struct Ends {
  Ends() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    EXPECT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  }
  std::array<int, 2> ends{-1, -1};
};

class RequestStreamTest : public ::testing::Test {
 protected:
  using Next = RequestStream::Next;
  using For = OpenConnections::For;

  // Answers with more than is read until that is given up.
  void AnswerWithoutEnd(const HttpLimits& limits) {
    RequestStream stream(connection_, limits, 1 << 20);
    const auto held = std::make_shared<int>(0);
    stream.Begin({"head", std::string(64 << 20, 'a'), held}, /*last=*/false);
    EXPECT_EQ(stream.Await(), Next::kMore);
    EXPECT_EQ(stream.waits_for(), For::kAnswer);
    EXPECT_EQ(stream.wanted(), POLLOUT);
    while (connection_.Ready(stream.wanted(), stream.deadline())) {
      ASSERT_EQ(stream.Await(), Next::kMore);
    }
    EXPECT_EQ(held.use_count(), 2);
    EXPECT_EQ(stream.GiveUp(), Next::kEnd);
  }

  void Send(const std::string& text) {
    EXPECT_EQ(::send(caller_.get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }

  // The next request's head, once that is whole or faulty.
  static std::optional<HttpHead> ReadHead(RequestStream& stream) {
    EXPECT_TRUE(WaitUntil([&] { return stream.Await() == Next::kHead; }));
    return stream.TakeHead();
  }

  // What has come for the caller by now.
  std::string Received() const {
    std::string text(1 << 10, '\0');
    const ssize_t size = ::recv(caller_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return text.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  }

  const Ends ends_;
  Connection connection_{Descriptor(ends_.ends[0])};
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

TEST_F(RequestStreamTest, ABodyIsBoundedHoweverItIsPacked) {
  RequestStream stream(connection_, {}, 100);
  std::string chunks;
  for (int i = 0; i < 20; ++i) chunks += "1\r\na\r\n";
  Send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks);
  ASSERT_TRUE(ReadHead(stream));
  size_t read = 0;
  for (auto piece = stream.ReadBody(); !piece.empty(); piece = stream.ReadBody())
    read += piece.size();
  EXPECT_LE(read, 100 / 6 + 1);
  ASSERT_TRUE(stream.fault());
  EXPECT_EQ(stream.fault()->status, 413);
}

TEST_F(RequestStreamTest, AHeadIsWaitedForAsItComes) {
  RequestStream stream(connection_, {}, 1 << 20);
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.waits_for(), For::kRequest);
  const TimePoint idle_until = stream.deadline();
  Send("GET / HT");
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.waits_for(), For::kHead);
  EXPECT_LT(stream.deadline(), idle_until);
  const TimePoint deadline = stream.deadline();
  Send("TP/1.1\r\n");
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.deadline(), deadline);  // whatever comes meanwhile
  Send("Host: x\r\n\r\nGET");
  ASSERT_EQ(stream.Await(), Next::kHead);
  EXPECT_EQ(stream.TakeHead()->target, "/");
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.GiveUp(), Next::kHead);
  EXPECT_FALSE(stream.TakeHead());
  EXPECT_EQ(stream.fault()->status, 408);
}

TEST_F(RequestStreamTest, WhoSendsNothingMoreIsNotWaitedFor) {
  RequestStream stream(connection_, {}, 1 << 20);
  EXPECT_EQ(stream.GiveUp(), Next::kEnd);
  EXPECT_EQ(::shutdown(caller_.get(), SHUT_WR), 0);
  EXPECT_EQ(stream.Await(), Next::kEnd);
}

TEST_F(RequestStreamTest, SkipsALittleOfABodyAsItComes) {
  RequestStream stream(connection_, {}, 1 << 30);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ";
  const std::string half(1 << 10, 'a');
  Send(head + "2048\r\n\r\n" + half);
  ASSERT_TRUE(ReadHead(stream));
  EXPECT_TRUE(stream.SkipBody());
  stream.Begin({"answer"}, /*last=*/false);
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.waits_for(), For::kEnd);
  EXPECT_EQ(Received(), "answer");
  Send(half);
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.waits_for(), For::kRequest);
  Send(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1\r\na\r\nffffffffffffffff\r\n");
  ASSERT_TRUE(ReadHead(stream));
  EXPECT_FALSE(stream.SkipBody());
  EXPECT_FALSE(stream.fault());
}

TEST_F(RequestStreamTest, SaysThatNothingFollowsWhereTheRestOfABodyIsFaulty) {
  RequestStream stream(connection_, {}, 1 << 20);
  Send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  ASSERT_TRUE(ReadHead(stream));
  EXPECT_TRUE(stream.SkipBody());
  stream.Begin({"answer"}, /*last=*/false);
  EXPECT_EQ(stream.Await(), Next::kMore);
  Send("x\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.waits_for(), For::kEnd);
  EXPECT_EQ(Received(), "answer");
  EXPECT_EQ(::shutdown(caller_.get(), SHUT_WR), 0);
  EXPECT_EQ(stream.Await(), Next::kEnd);
}

TEST_F(RequestStreamTest, AHeadThatIsFaultyIsAnsweredOnce) {
  RequestStream stream(connection_, {}, 1 << 20);
  Send("GET / HTTP/1.1\r\nHost : x\r\n\r\n");
  EXPECT_FALSE(ReadHead(stream));
  stream.Begin({"answer"}, /*last=*/true);
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.waits_for(), For::kEnd);
  EXPECT_EQ(stream.GiveUp(), Next::kEnd);
}

TEST_F(RequestStreamTest, OverlooksWhatComesAfterTheLastAnswer) {
  RequestStream stream(connection_, {.linger = milliseconds(100)}, 1 << 20);
  Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(ReadHead(stream));
  const auto held = std::make_shared<int>(0);
  stream.Begin({"answer", "", held}, /*last=*/true);
  EXPECT_EQ(stream.Await(), Next::kMore);
  EXPECT_EQ(stream.waits_for(), For::kEnd);
  EXPECT_EQ(held.use_count(), 1);
  const TimePoint deadline = stream.deadline();
  while (stream.Await() == Next::kMore) Send("more");
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

TEST_F(RequestStreamTest, ACallerWhoWaitsForLeaveIsAskedForTheBodyThatIsWanted) {
  RequestStream stream(connection_, {}, 1 << 20);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  Send(head);
  ASSERT_TRUE(ReadHead(stream));
  std::thread caller([&] {
    std::string asked;
    while (asked.empty()) asked = Received();
    EXPECT_EQ(asked, "HTTP/1.1 100 Continue\r\n\r\n");
    Send("hello");
  });
  EXPECT_EQ(stream.ReadBody(), "hello");
  caller.join();
  EXPECT_TRUE(stream.SkipBody());
  // Who does not want the body asks for nothing, and cannot go on.
  Send(head);
  ASSERT_TRUE(ReadHead(stream));
  EXPECT_FALSE(stream.SkipBody());
  EXPECT_EQ(Received(), "");
}

}  // namespace
}  // namespace linserve
