#pragma once

#include <memory>
#include <string>

#include "support/programs.h"

namespace linserve {

// Runs a server that all tests of a suite ask and none changes. SetUpTestSuite() calls Serve().
class SharedServerTest : public ::testing::Test {
 protected:
  static void Serve(const std::string& repository) {
    server_ = std::make_unique<RunningServer>(repository);
  }

  // Makes an empty directory for models, which goes away after the server.
  static std::string MakeRepository() {
    models_ = std::make_unique<TempDir>();
    return models_->File(".");
  }

  static void TearDownTestSuite() {
    EXPECT_EQ(server_->Stop(), 0) << server_->log();
    server_.reset();
    models_.reset();
  }

  static const RunningServer& shared() { return *server_; }

 private:
  static inline std::unique_ptr<TempDir> models_;
  static inline std::unique_ptr<RunningServer> server_;
};

// Runs a server that has one model, "bytes".
class ServedModelTest : public SharedServerTest {
 protected:
  static void SetUpTestSuite() {
    const std::string repository = MakeRepository();
    InitModel(repository + "/bytes");
    Serve(repository);
  }

  TempDir directory_;  // for one test alone
};

}  // namespace linserve
