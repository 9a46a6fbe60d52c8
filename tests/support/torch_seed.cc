#include <gtest/gtest.h>

#include "attention/aten.h"

namespace linserve {
namespace {

// Each test draws the same numbers, alone and after others.
class SeedBeforeEachTest : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*test*/) override { at::manual_seed(1); }
};

const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new SeedBeforeEachTest);
  return true;
}();

}  // namespace
}  // namespace linserve
