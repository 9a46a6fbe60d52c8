#include "access/tls.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/fakes/fake_clock.h"
#include "support/test_certificates.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() { WriteTlsFiles(authority_, files_); }

  TempDir directory_;
  TestAuthority authority_;
  TlsFiles files_{directory_.File("tls.crt"), directory_.File("tls.key"),
                  directory_.File("ca.crt")};
};

TEST_F(TlsFilesTest, AreGoodWithoutAnyOrWithAllThatIsNeeded) {
  EXPECT_TRUE(CheckTlsFiles({}).ok());
  EXPECT_TRUE(CheckTlsFiles({files_.certificate, files_.private_key, ""}).ok());
  EXPECT_TRUE(CheckTlsFiles(files_).ok());
}

TEST_F(TlsFilesTest, NameTheOneThatIsMissingOrBroken) {
  EXPECT_THAT(CheckTlsFiles({"", files_.private_key, ""}),
              IsStatus(StatusCode::kInvalidArgument, "mean nothing without tls_certificate"));
  EXPECT_THAT(CheckTlsFiles({files_.certificate, "", ""}),
              IsStatus(StatusCode::kInvalidArgument, "tls_private_key is not"));
  EXPECT_THAT(
      CheckTlsFiles({"/nowhere.crt", files_.private_key, ""}),
      IsStatus(StatusCode::kNotFound, "tls_certificate: cannot open '/nowhere.crt': No such file"));
  EXPECT_THAT(CheckTlsFiles({files_.certificate, files_.certificate, ""}),
              IsStatus(StatusCode::kInvalidArgument, "tls_private_key " + files_.certificate));
  WriteAll(files_.private_key, authority_.Sign("other").private_key);
  EXPECT_THAT(CheckTlsFiles(files_),
              IsInvalid("is not the key of tls_certificate " + files_.certificate));
}

TEST_F(TlsFilesTest, AreFilesOfABoundedLength) {
  const std::string pipe = directory_.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string large = directory_.File("large");
  WriteAll(large, ReadAll(files_.certificate));
  std::filesystem::resize_file(large, 5 << 20);
  for (std::string TlsFiles::*const file :
       {&TlsFiles::certificate, &TlsFiles::private_key, &TlsFiles::client_ca}) {
    for (const std::string& path : {pipe, std::string("/dev/zero"), large}) {
      TlsFiles files = files_;
      files.*file = path;
      EXPECT_THAT(CheckTlsFiles(files),
                  IsInvalid(path == large ? "is longer than" : "expected a regular file"));
    }
  }
}

TEST_F(TlsFilesTest, NeedAnAuthorityThatIsOne) {
  WriteAll(files_.client_ca, "");
  EXPECT_THAT(CheckTlsFiles(files_), IsStatus(StatusCode::kInvalidArgument, "tls_client_ca"));
}

TEST_F(TlsFilesTest, NeedAKeyWithoutAPassword) {
  WriteAll(files_.private_key, authority_.Sign("server", 24h, "password").private_key);
  EXPECT_THAT(CheckTlsFiles(files_), IsInvalid("cannot be used: bad password read"));
}

TEST_F(TlsFilesTest, ThatDoNotBelongTogetherChangeNothing) {
  FakeClock clock;
  const auto tls = ReloadingTls::Open(files_, clock);
  ASSERT_TRUE(tls.ok()) << tls.status();
  const auto before = (*tls)->Current();
  const auto next = authority_.Sign("server");
  WriteAll(files_.private_key, next.private_key);
  clock.Advance(2s);
  EXPECT_EQ((*tls)->Current(), before);
  WriteAll(files_.certificate, next.certificate);
  EXPECT_EQ((*tls)->Current(), before) << "a second has not passed";
  clock.Advance(2s);
  EXPECT_EQ((*tls)->Current()->certificate, next.certificate);
  EXPECT_EQ((*tls)->Current()->private_key, next.private_key);
}

}  // namespace
}  // namespace linserve
