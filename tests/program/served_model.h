#pragma once

#include <memory>

#include "support/programs.h"

namespace linserve {

// A server of one model, "bytes", which all tests of a suite ask and none changes.
class ServedModelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    served_ = std::make_unique<Served>();
    InitModel(served_->directory.File("models/bytes"));
    served_->server = std::make_unique<RunningServer>(served_->directory.File("models"));
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(served_->server->Stop(), 0);
    served_.reset();
  }

  static RunningServer& server() { return *served_->server; }

  TempDir directory_;  // of the test alone

 private:
  struct Served {
    TempDir directory;
    std::unique_ptr<RunningServer> server;
  };
  static inline std::unique_ptr<Served> served_;
};

}  // namespace linserve
