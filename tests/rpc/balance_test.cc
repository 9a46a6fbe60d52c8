#include <cmath>
#include <string>

#include "support/test_server.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

class Balance : public testing::Test {
 protected:
  Balance() {
    one_.grpc().SetServing(true);
    two_.grpc().SetServing(true);
  }

  EmbeddingClient Client() {
    ClientOptions options = one_.client_options();
    options.target = "ipv4:" + one_.target() + "," + two_.target();
    options.balance = true;
    return EmbeddingClient(options);
  }

  static double Calls(const TestServer& server) {
    // A model's series are there from its first call on.
    const double calls =
        server.Scrape()[R"(linserve_requests_total{code="OK",model="tokens",rpc="Embed"})"];
    return std::isnan(calls) ? 0 : calls;
  }

  void Embed(EmbeddingClient& client, int times) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(client.Embed(call_).ok());
    made_ += times;
    // Calls are counted once they are done with, a little after their answers.
    EXPECT_TRUE(WaitUntil([&] { return Calls(one_) + Calls(two_) >= made_; }));
  }

  void ConnectToBoth(EmbeddingClient& client) {
    EXPECT_TRUE(WaitUntil([&] {
      Embed(client, 1);
      return Calls(one_) > 0 && Calls(two_) > 0;
    }));
  }

  int made_ = 0;
  const EmbedCall call_ = CallOf("tokens", {Tokens("a", {1, 2})});
  TestServer one_;
  TestServer two_;
};

TEST_F(Balance, CallsGoToAllAddressesInTurn) {
  EmbeddingClient client = Client();
  ConnectToBoth(client);
  const double before = Calls(one_);
  Embed(client, 10);
  EXPECT_EQ(Calls(one_), before + 5);
}

TEST_F(Balance, WhoeverSaysThatItDoesNotServeGetsNoMoreCalls) {
  EmbeddingClient client = Client();
  ConnectToBoth(client);
  one_.grpc().SetServing(false);
  double before = -1;
  while (before != Calls(one_)) {  // until the client has heard of it
    before = Calls(one_);
    Embed(client, 4);
  }
  Embed(client, 10);
  EXPECT_EQ(Calls(one_), before);
}

TEST_F(Balance, WhatADrainingServerRefusesIsTriedElsewhere) {
  EmbeddingClient client = Client();
  ConnectToBoth(client);
  one_.grpc().Drain();
  one_.repository().Drain(TimePoint::max());
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(client.Embed(call_).ok());
}

}  // namespace
}  // namespace linserve
