#include "models/devices.h"

#include <gmock/gmock.h>

#include <fstream>

#include "attention/device/device_plugin.h"
#include "support/paths.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kPlugins = BuiltFile("lib");

TEST(PlanDevices, OfTheCpuNeedsNoPlugin) {
  const auto plan = PlanDevices("cpu", "/nowhere");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->devices, ElementsAre("cpu"));
  EXPECT_EQ(plan->accelerators(), 0);
  EXPECT_EQ(plan->fallback, "");
}

TEST(PlanDevices, NamesThoseThatAreAskedForInTheirOrder) {
  const auto plan = PlanDevices("simulated:1,simulated:0", kPlugins);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->devices, ElementsAre("simulated:1", "simulated:0"));
  EXPECT_THAT(plan->descriptions, ElementsAre("simulated device 1", "simulated device 0"));
  EXPECT_EQ(plan->accelerators(), 2);
}

TEST(PlanDevices, WithoutANumberAreAllThereAre) {
  const auto plan = PlanDevices("simulated", kPlugins);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->devices, ElementsAre("simulated:0", "simulated:1"));
}

TEST(PlanDevices, SayWhichThereAre) {
  EXPECT_THAT(PlanDevices("simulated:2", kPlugins),
              IsStatus(absl::StatusCode::kInvalidArgument,
                       "device simulated:2 does not exist; there is simulated:0 to simulated:1"));
}

TEST(PlanDevices, RefuseWhatIsNoDevice) {
  for (const char* choice : {"", "GPU", "gpu", "cpu,cuda", "cuda0", "cuda:", "cuda:x", "cuda:-1",
                             "cuda:0,", "../cuda", "cuda 0"}) {
    EXPECT_THAT(PlanDevices(choice, kPlugins),
                IsStatus(absl::StatusCode::kInvalidArgument, "is none of auto, cpu, cuda"))
        << choice;
  }
}

TEST(PlanDevices, SayWhyAPluginCannotBeUsed) {
  const std::string faulty = kPlugins + "/faulty";
  EXPECT_THAT(PlanDevices("cuda", faulty),
              IsStatus(absl::StatusCode::kNotFound, "liblinserve_cuda.so"));
  const std::string abis = "has ABI " + std::to_string(kDevicePluginAbi + 1) + ", this linserve " +
                           std::to_string(kDevicePluginAbi);
  EXPECT_THAT(PlanDevices("abi", faulty), IsStatus(absl::StatusCode::kFailedPrecondition, abis));
  EXPECT_THAT(PlanDevices("torch", faulty),
              IsStatus(absl::StatusCode::kFailedPrecondition, "was built with LibTorch 1.0.0"));
  EXPECT_THAT(PlanDevices("entry", faulty),
              IsStatus(absl::StatusCode::kFailedPrecondition, "is not a plug-in of linserve"));
  EXPECT_THAT(PlanDevices("none", faulty),
              IsStatus(absl::StatusCode::kUnavailable, "this machine has no faulty device"));
  const TempDir broken;
  std::ofstream(broken.File("liblinserve_text.so")) << "not a library";
  EXPECT_THAT(PlanDevices("text", broken.File(".")),
              IsStatus(absl::StatusCode::kFailedPrecondition, "cannot open the plug-in"));
}

// Whatever keeps PlanDevices() from all of them lets "auto" fall back to the CPU.
TEST(PlanDevices, LeaveOutDevicesThatCannotBeUsed) {
  const std::string faulty = kPlugins + "/faulty";
  const auto plan = PlanDevices("old", faulty);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->devices, ElementsAre("old:1"));
  EXPECT_THAT(plan->descriptions, ElementsAre("faulty device 1"));
  EXPECT_THAT(PlanDevices("old:0", faulty),
              IsStatus(absl::StatusCode::kUnavailable, "faulty device 0 is too old"));
  EXPECT_THAT(PlanDevices("ancient", faulty),
              IsStatus(absl::StatusCode::kUnavailable, "faulty device 0 is too old"));
}

TEST(PlanDevices, OfAutoFallBackToTheCpuAndSayWhy) {
  constexpr const char* kDriver = "libc.so.6";  // a library that is there
  const TempDir empty;
  auto plan = PlanDevices("auto", empty.File("."), kDriver);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->devices, ElementsAre("cpu"));
  EXPECT_EQ(plan->fallback, "no_plugin");
  EXPECT_THAT(plan->reason, HasSubstr("liblinserve_cuda.so"));
  EXPECT_THAT(plan->descriptions, IsEmpty());

  std::ofstream(empty.File("liblinserve_cuda.so")) << "not a library";
  plan = PlanDevices("auto", empty.File("."), kDriver);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->devices, ElementsAre("cpu"));
  EXPECT_EQ(plan->fallback, "unusable_plugin");
}

TEST(PlanDevices, OfAutoOpenNoPluginWhereThereIsNoDriver) {
  const TempDir broken;
  std::ofstream(broken.File("liblinserve_cuda.so")) << "not a library";
  const auto plan = PlanDevices("auto", broken.File("."), "libnone.so.1");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->devices, ElementsAre("cpu"));
  EXPECT_EQ(plan->fallback, "no_device");
  EXPECT_EQ(plan->reason, "no GPU was found: there is no NVIDIA driver (libnone.so.1)");
}

}  // namespace
}  // namespace linserve
