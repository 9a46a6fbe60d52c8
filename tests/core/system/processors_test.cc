#include "core/system/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace linserve {
namespace {

class ProcessorsTest : public testing::Test {
 protected:
  ~ProcessorsTest() override { SetProcessors(0); }
};

TEST_F(ProcessorsTest, AreThoseThatTheProcessMayUse) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_GE(Processors(), 1);
  EXPECT_LE(Processors(), CPU_COUNT(&allowed));
}

TEST_F(ProcessorsTest, AreAsManyAsTheyAreSetTo) {
  SetProcessors(5000);
  EXPECT_EQ(Processors(), 5000);
}

}  // namespace
}  // namespace linserve
