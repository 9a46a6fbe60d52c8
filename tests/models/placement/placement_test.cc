#include "models/placement/placement.h"

#include <gtest/gtest.h>

#include "attention/device/device_plugin.h"
#include "attention/rows/aten.h"
#include "models/network/layers.h"
#include "models/simulated.h"

namespace linserve {
namespace {

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() : simulated_(Simulated()), placement_(at::Device("simulated:0")) {}
  ~PlacementTest() override { simulated_.stall(false); }

  const void* Allocate(int64_t elements) const {
    return placement_.HostTensor({elements}, at::kFloat).const_data_ptr();
  }

  const SimulatedControl& simulated_;
  const c10::InferenceMode no_autograd_;
  const Placement placement_;
};

TEST_F(PlacementTest, GivesTheHostsMemoryAgainOnceWhatWasCopiedThereIsThrough) {
  const void* first = Allocate(50000);
  EXPECT_EQ(Allocate(40000), first) << "of the same size, rounded up";
  simulated_.stall(true);
  EXPECT_NE(Allocate(50000), first) << "the device may still copy what was given back";
  simulated_.stall(false);
  const at::Tensor one = placement_.HostTensor({50000}, at::kFloat);
  const at::Tensor other = placement_.HostTensor({50000}, at::kFloat);
  EXPECT_NE(one.const_data_ptr(), other.const_data_ptr());
}

TEST_F(PlacementTest, KeepsWhatItHasCopiedToTheDeviceUntilThatIsThrough) {
  const DevicePlugin& plugin = *FindDevicePlugin(placement_.device().type());
  const auto used = [&] { return plugin.memory(0).used; };
  constexpr int64_t kBytes = 4 << 20;
  const int64_t before = used();
  simulated_.stall(true);
  { const at::Tensor copy = placement_.ToDevice(at::zeros({kBytes / 4})); }
  placement_.ToDevice(at::zeros({1}));
  EXPECT_GE(used(), before + kBytes) << "another stream may still read it";
  simulated_.stall(false);
  placement_.ToDevice(at::zeros({1}));
  EXPECT_LT(used(), before + kBytes);
}

TEST_F(PlacementTest, TellsTheDeviceOfEachRowsPlaceInItsSequence) {
  PlacedLayout layout;
  layout.starts = {0, 4};
  layout.lengths = {3, 4};
  layout.rows = 8;
  layout.padded_length = 4;
  placement_.AddTable(layout);
  EXPECT_TRUE(layout.table->positions.cpu().equal(at::tensor({0, 1, 2, 0, 0, 1, 2, 3}, at::kInt)));
}

TEST_F(PlacementTest, LetsTheDeviceComputeManyRowsAtOnce) {
  const at::Tensor rows = placement_.ToDevice(at::ones({65536, 2}));
  const int64_t before = simulated_.launches();
  AddByRows(rows, rows, [](const at::Tensor& some) { return some * 2; });
  EXPECT_EQ(simulated_.launches() - before, 2) << "a product and a sum";
  EXPECT_TRUE(rows.cpu().eq(3).all().item<bool>());
}

}  // namespace
}  // namespace linserve
