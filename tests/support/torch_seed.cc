#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace linserve {
namespace {

// Lets each test draw the same numbers, alone and after others. at::manual_seed() would also seed
// the simulated device, which draws none.
class SeedBeforeEachTest : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*test*/) override {
    at::Generator(at::detail::getDefaultCPUGenerator()).set_current_seed(1);
  }
};

const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new SeedBeforeEachTest);
  return true;
}();

}  // namespace
}  // namespace linserve
