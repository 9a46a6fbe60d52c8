#include "access/access.h"

#include <gmock/gmock.h>

#include "support/fakes/fake_clock.h"
#include "support/test_files.h"
#include "telemetry/scraped.h"

namespace linserve {
namespace {

using absl::StatusCode;
using namespace std::chrono_literals;

std::string OneToken(const std::string& name, const std::string& token,
                     const std::string& more = "") {
  return R"({"tokens": [{"name": ")" + name + R"(", "token": ")" + token + "\"" + more + "}]}";
}

constexpr char kFirst[] = "Bearer the first of tokens";
constexpr char kSecond[] = "Bearer the second of tokens";

class AccessTest : public testing::Test {
 protected:
  AccessTest() { Write(OneToken("first", "the first of tokens")); }

  void Write(const std::string& text) { WriteAll(path_, text); }
  bool Known(Access& access, const std::string& header) {
    return access.Authenticate(header, "ipv4:10.0.0.1:1").ok();
  }

  TempDir directory_;
  const std::string path_ = directory_.File("tokens.json");
  FakeClock clock_;
  Metrics metrics_{{}};
};

TEST_F(AccessTest, IsOpenToAllWithoutAFile) {
  auto access = Access::Open("", metrics_, clock_);
  ASSERT_TRUE(access.ok());
  const auto caller = (*access)->Authenticate("", "ipv4:10.0.0.1:4711");
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ((*caller)->name(), "10.0.0.1");
  EXPECT_FALSE((*caller)->has_token());
  EXPECT_TRUE((*caller)->May(Right::kControl).ok());
}

TEST_F(AccessTest, TellsOfAFaultyFileThoughNobodyCalls) {
  auto access = Access::Open(path_, metrics_, clock_);
  ASSERT_TRUE(access.ok()) << access.status();
  Write("{");
  clock_.Advance(1s);
  (*access)->Look();
  EXPECT_EQ(Scraped(metrics_.Scrape())[R"(linserve_reload_failures_total{what="tokens"})"], 1);
  EXPECT_TRUE(Known(**access, kFirst));
}

TEST_F(AccessTest, IsByAKnownTokenOnly) {
  auto access = Access::Open(path_, metrics_, clock_);
  ASSERT_TRUE(access.ok()) << access.status();
  const auto caller = (*access)->Authenticate(kFirst, "ipv4:10.0.0.1:4711");
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ((*caller)->name(), "first");
  EXPECT_TRUE((*caller)->has_token());
  EXPECT_TRUE(Known(**access, "bearer the first of tokens"));
  for (const char* header : {"", "Bearer", "Bearer ", "Basic abc", "the first of tokens"}) {
    EXPECT_THAT((*access)->Authenticate(header, ""),
                IsStatus(StatusCode::kUnauthenticated, "there is no token; this server expects"));
  }
  EXPECT_THAT((*access)->Authenticate(kSecond, ""),
              IsStatus(StatusCode::kUnauthenticated, "the token is not known"));
}

TEST_F(AccessTest, FollowsTheFileWithinASecond) {
  auto access = Access::Open(path_, metrics_, clock_);
  ASSERT_TRUE(access.ok());
  EXPECT_TRUE(Known(**access, kFirst));
  Write(OneToken("other", "the second of tokens"));
  EXPECT_FALSE(Known(**access, kSecond));
  clock_.Advance(1s);
  EXPECT_TRUE(Known(**access, kSecond));
  EXPECT_FALSE(Known(**access, kFirst));
}

TEST_F(AccessTest, KeepsTheTokensWhileTheFileIsBroken) {
  auto access = Access::Open(path_, metrics_, clock_);
  ASSERT_TRUE(access.ok());
  Write("{");
  clock_.Advance(1s);
  EXPECT_TRUE(Known(**access, kFirst));
  std::filesystem::remove(path_);
  clock_.Advance(1s);
  EXPECT_TRUE(Known(**access, kFirst));
  EXPECT_EQ(Scraped(metrics_.Scrape())[R"(linserve_reload_failures_total{what="tokens"})"], 2);
  Write(OneToken("other", "the second of tokens"));
  clock_.Advance(1s);
  EXPECT_TRUE(Known(**access, kSecond));
}

TEST_F(AccessTest, TellsOnceWhyTheFileCannotBeRead) {
  auto access = Access::Open(path_, metrics_, clock_);
  ASSERT_TRUE(access.ok());
  Write("{");
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(1s);
    EXPECT_TRUE(Known(**access, kFirst));
  }
  EXPECT_EQ(Scraped(metrics_.Scrape())[R"(linserve_reload_failures_total{what="tokens"})"], 1);
}

TEST_F(AccessTest, WhatCouldNotBeReadIsReadAgainEvenIfItIsTheSame) {
  FileWatch watch({path_}, clock_);
  Write("{");
  clock_.Advance(1s);
  EXPECT_TRUE(watch.Changed());
  EXPECT_TRUE(watch.IsNews(absl::NotFoundError("")));
  EXPECT_FALSE(watch.Changed());
  clock_.Advance(1s);
  EXPECT_TRUE(watch.Changed());
  clock_.Advance(1s);
  EXPECT_FALSE(watch.Changed());
}

TEST_F(AccessTest, ANewFileIsNoNewBudget) {
  const std::string rate = R"(, "requests_per_second": 1)";
  Write(OneToken("first", "the first of tokens", rate));
  auto access = Access::Open(path_, metrics_, clock_);
  ASSERT_TRUE(access.ok());
  EXPECT_TRUE((*(*access)->Authenticate(kFirst, ""))->Spend(1, clock_.Now()).ok());
  Write(OneToken("first", "the second of tokens", rate));
  clock_.Advance(999ms);
  EXPECT_TRUE(Known(**access, kFirst));
  clock_.Advance(1ms);
  ASSERT_TRUE(Known(**access, kSecond));
  const auto caller = *(*access)->Authenticate(kSecond, "");
  EXPECT_TRUE(caller->Spend(1, clock_.Now()).ok());
  EXPECT_FALSE(caller->Spend(1, clock_.Now()).ok());
}

TEST_F(AccessTest, RefusesToBeginWithABrokenFile) {
  EXPECT_THAT(Access::Open(path_ + "x", metrics_, clock_),
              IsStatus(StatusCode::kNotFound, "cannot read the tokens file"));
  Write("{}");
  EXPECT_THAT(Access::Open(path_, metrics_, clock_),
              IsStatus(StatusCode::kInvalidArgument, path_ + ": expected JSON of the form"));
  Write(std::string((4 << 20) + 1, ' '));
  EXPECT_THAT(Access::Open(path_, metrics_, clock_),
              IsStatus(StatusCode::kInvalidArgument, "is longer than 4194304 bytes"));
}

TEST(MachineOf, IsTheAddressWithoutThePort) {
  EXPECT_EQ(MachineOf("ipv4:10.0.0.1:4711"), "10.0.0.1");
  EXPECT_EQ(MachineOf("unix:/run/linserve.sock"), "unix");
  EXPECT_EQ(MachineOf("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(MachineOf(""), "");
}

TEST(MachineOf, IsTheNetworkOfAnIpv6Address) {
  EXPECT_EQ(MachineOf("ipv6:%5B2001:db8::1%5D:4711"), "2001:db8::/64");
  EXPECT_EQ(MachineOf("2001:db8:0:1:aaaa:bbbb:cccc:dddd"), "2001:db8:0:1::/64");
  EXPECT_EQ(MachineOf("ipv6:%5Bfe80::1%25eth0%5D:4711"), "fe80::/64");
  EXPECT_EQ(MachineOf("ipv6:[::1]:4711"), "::1");
  EXPECT_EQ(MachineOf("ipv6:%5B::ffff:10.0.0.1%5D:4711"), "10.0.0.1");
}

}  // namespace
}  // namespace linserve
