#include "access/tls.h"

#include <gmock/gmock.h>

#include "support/test_certificates.h"
#include "support/test_files.h"

namespace linserve {
namespace {

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
      IsStatus(StatusCode::kNotFound, "tls_certificate /nowhere.crt cannot be read: No such file"));
  EXPECT_THAT(CheckTlsFiles({files_.certificate, files_.certificate, ""}),
              IsStatus(StatusCode::kInvalidArgument, "tls_private_key " + files_.certificate));
  WriteAll(files_.private_key, authority_.Sign("other").private_key);
  EXPECT_THAT(CheckTlsFiles(files_), IsStatus(StatusCode::kInvalidArgument, "mismatch"));
}

TEST_F(TlsFilesTest, NeedAnAuthorityThatIsOne) {
  WriteAll(files_.client_ca, "");
  EXPECT_THAT(CheckTlsFiles(files_), IsStatus(StatusCode::kInvalidArgument, "tls_client_ca"));
}

}  // namespace
}  // namespace linserve
