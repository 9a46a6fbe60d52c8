#include "rpc/guards/listener_check.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "support/fakes/fake_clock.h"
#include "support/test_server.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Listens on a port whose connections the system takes, and nobody else.
class DeafListener {
 public:
  // So many connections and one more wait at most.
  explicit DeafListener(int waiting = 16) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = Loopback(0);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(socket_, waiting), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  DeafListener(const DeafListener&) = delete;
  DeafListener& operator=(const DeafListener&) = delete;
  ~DeafListener() { ::close(socket_); }

  int port() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

// Begins to connect to a port of this machine.
class WaitingCaller {
 public:
  explicit WaitingCaller(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    const sockaddr_in address = Loopback(port);
    ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  WaitingCaller(const WaitingCaller&) = delete;
  WaitingCaller& operator=(const WaitingCaller&) = delete;
  ~WaitingCaller() { ::close(socket_); }

 private:
  int socket_;
};

TEST(ListenerCheck, AServerThatServesAccepts) {
  TestServer server;
  FakeClock clock;
  ListenerCheck check("0.0.0.0", server.grpc().port(), clock);
  clock.Advance(1h);
  EXPECT_TRUE(check.Accepts());
  EXPECT_TRUE(server.grpc().Accepts());
}

TEST(ListenerCheck, IsPatientWithASlowOneAndThenGivesUp) {
  const DeafListener deaf;
  FakeClock clock;
  ListenerCheck check("127.0.0.1", deaf.port(), clock);
  EXPECT_TRUE(check.Accepts());
  clock.Advance(9s);
  EXPECT_TRUE(check.Accepts());
  clock.Advance(1s);
  EXPECT_FALSE(check.Accepts());
}

// Linux tries for two minutes to connect where more wait than the listener lets.
TEST(ListenerCheck, DoesNotWaitForLongWhereTooManyWaitAlready) {
  const DeafListener deaf(/*waiting=*/0);
  std::vector<std::unique_ptr<WaitingCaller>> callers;
  for (int i = 0; i < 4; ++i) callers.push_back(std::make_unique<WaitingCaller>(deaf.port()));
  FakeClock clock;
  ListenerCheck check("127.0.0.1", deaf.port(), clock);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(check.Accepts());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  clock.Advance(10s);
  EXPECT_FALSE(check.Accepts());
}

TEST(ListenerCheck, KnowsAPortThatNobodyListensOn) {
  int port = 0;
  {
    const DeafListener gone;
    port = gone.port();
  }
  FakeClock clock;
  ListenerCheck check("127.0.0.1", port, clock);
  clock.Advance(1h);
  EXPECT_TRUE(check.Accepts());  // one failure is no proof, however seldom it is asked
  clock.Advance(10s);
  EXPECT_FALSE(check.Accepts());
}

}  // namespace
}  // namespace linserve
