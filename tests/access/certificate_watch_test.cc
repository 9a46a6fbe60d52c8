#include "access/certificate_watch.h"

#include <gmock/gmock.h>

#include <cmath>

#include "support/fakes/fake_clock.h"
#include "support/test_certificates.h"
#include "support/test_files.h"
#include "telemetry/scraped.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class CertificateWatchTest : public testing::Test {
 protected:
  CertificateWatchTest() { Write(24h); }

  // Writes a certificate for a server that is good for so long, and then the authority's.
  void Write(std::chrono::seconds valid) {
    const auto server = authority_.Sign("server", valid);
    WriteAll(files_.certificate, server.certificate + authority_.pem());
    WriteAll(files_.private_key, server.private_key);
  }
  double Remaining() const {
    return Scraped(metrics_.Scrape())["linserve_certificate_remaining_seconds"];
  }
  double Failures() const {
    return Scraped(metrics_.Scrape())[R"(linserve_reload_failures_total{what="certificate"})"];
  }

  // Looks so many times, once a second, and returns what is logged.
  std::string LogOfLooks(CertificateWatch& watch, int looks) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < looks; ++i) {
      clock_.Advance(1s);
      watch.Look();
    }
    return testing::internal::GetCapturedStderr();
  }

  TempDir directory_;
  TestAuthority authority_;
  const TlsFiles files_{directory_.File("tls.crt"), directory_.File("tls.key"), ""};
  FakeClock clock_;
  Metrics metrics_{{}};
};

TEST_F(CertificateWatchTest, TellsWhenTheFirstOfTheChainExpires) {
  Write(1h);
  CertificateWatch(files_, metrics_, clock_);
  EXPECT_NEAR(Remaining(), 3600, 60);
  Write(48h);
  CertificateWatch(files_, metrics_, clock_);
  EXPECT_NEAR(Remaining(), 86400, 60) << "the authority's expires in a day";
}

TEST_F(CertificateWatchTest, FollowsTheFiles) {
  CertificateWatch watch(files_, metrics_, clock_);
  Write(2h);
  watch.Look();
  EXPECT_NEAR(Remaining(), 86400, 60) << "it looks once a second";
  clock_.Advance(1s);
  watch.Look();
  EXPECT_NEAR(Remaining(), 7200, 60);
  EXPECT_EQ(Failures(), 0);
}

TEST_F(CertificateWatchTest, TellsOfFilesThatCannotBeUsedOnceForEachChange) {
  CertificateWatch watch(files_, metrics_, clock_);
  for (const int failures : {1, 2}) {
    WriteAll(files_.private_key, "no key");
    const std::string log = LogOfLooks(watch, 4);
    EXPECT_THAT(log, HasSubstr("because=\"tls_private_key " + files_.private_key + " cannot be"));
    EXPECT_EQ(log.find("cannot be read again"), log.rfind("cannot be read again")) << log;
    EXPECT_EQ(Failures(), failures);
    EXPECT_NEAR(Remaining(), 86400, 60) << "connections get the certificate of before";
    Write(24h);
    EXPECT_THAT(LogOfLooks(watch, 2), HasSubstr("certificate read file=" + files_.certificate));
  }
}

TEST_F(CertificateWatchTest, AKeyThatComesBeforeItsCertificateIsNoFault) {
  CertificateWatch watch(files_, metrics_, clock_);
  const auto next = authority_.Sign("server", 2h);
  WriteAll(files_.private_key, next.private_key);
  EXPECT_EQ(LogOfLooks(watch, 1), "");
  WriteAll(files_.certificate, next.certificate);
  EXPECT_THAT(LogOfLooks(watch, 2), HasSubstr("certificate read"));
  EXPECT_EQ(Failures(), 0);
  EXPECT_NEAR(Remaining(), 7200, 60);
}

TEST_F(CertificateWatchTest, SaysNothingWithoutTls) {
  CertificateWatch watch({}, metrics_, clock_);
  clock_.Advance(1s);
  watch.Look();
  EXPECT_TRUE(std::isnan(Remaining()));
  EXPECT_EQ(Failures(), 0);
}

}  // namespace
}  // namespace linserve
