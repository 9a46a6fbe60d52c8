#include "guard.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "arena.h"
#include "simulated_device.h"

namespace linserve {
namespace {

std::array<std::atomic<bool>, kDevices> lost;
std::atomic<bool> stalled = false;

class Guard : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device old = getDevice();
    setDevice(device);
    return old;
  }
  c10::Device getDevice() const override { return {kType, CurrentDevice()}; }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) CurrentDevice() = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device.has_index() ? device : getDevice(), stream);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, ++last_stream);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const c10::Stream old = getStream(next.device());
    stream = next.id();
    return old;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  // Work is done at once, so that there is nothing to wait for. An event is the device's number and
  // whether the device was stalled then.
  void record(void** event, const c10::Stream& on, c10::DeviceIndex /*index*/,
              c10::EventFlag /*flag*/) const override {
    CheckAlive(on.device_index());
    const auto device = static_cast<uintptr_t>(on.device_index());
    *event = reinterpret_cast<void*>(1 + 2 * device + (stalled ? kStalled : 0));
  }
  void block(void* /*event*/, const c10::Stream& waiting) const override {
    CheckAlive(waiting.device_index());
  }
  bool queryEvent(void* event) const override {
    CheckAlive(DeviceOf(event));
    return (reinterpret_cast<uintptr_t>(event) & kStalled) == 0 || !stalled;
  }
  void synchronizeEvent(void* event) const override { CheckAlive(DeviceOf(event)); }
  bool queryStream(const c10::Stream& on) const override {
    CheckAlive(on.device_index());
    return true;
  }
  void synchronizeStream(const c10::Stream& on) const override { CheckAlive(on.device_index()); }
  void synchronizeDevice(c10::DeviceIndex index) const override { CheckAlive(index); }

 private:
  static constexpr uintptr_t kStalled = 256;

  static c10::DeviceIndex DeviceOf(const void* event) {
    return static_cast<c10::DeviceIndex>(reinterpret_cast<uintptr_t>(event) % kStalled / 2);
  }

  static thread_local c10::StreamId stream;
  static thread_local c10::StreamId last_stream;
};

thread_local c10::StreamId Guard::stream = 0;
thread_local c10::StreamId Guard::last_stream = 0;

struct Hooks : public at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  at::Allocator* getPinnedMemoryAllocator() const override {
    TORCH_CHECK(false, "simulated device: pinned memory of LibTorch's asks it when it is freed, ",
                "which ends the process if it is lost by then");
  }
};

}  // namespace

void RegisterGuard() {
  static const Guard guard;
  static const c10::impl::DeviceGuardImplRegistrar registrar(kType, &guard);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
}

void CheckAlive(c10::DeviceIndex index) {
  constexpr int32_t kIllegalAddress = 700;
  if (!lost[static_cast<size_t>(index)]) return;
  throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, kIllegalAddress,
                              "simulated device: an illegal memory access was encountered");
}

bool IsStalled() { return stalled; }

void LoseSimulated(int64_t index, bool failed) { lost.at(static_cast<size_t>(index)) = failed; }

void StallSimulated(bool waiting) { stalled = waiting; }

}  // namespace linserve
