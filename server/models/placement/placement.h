#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "attention/rows/placed_layout.h"
#include "core/sequence/batch.h"
#include "core/tensor/tensor.h"
#include "models/placement/tensors_in_use.h"

namespace linserve {

// Says where one replica computes: on the CPU, or on a device with streams of its own, so that what
// is copied to and fro waits for no computation that it does not need.
class Placement {
 public:
  explicit Placement(at::Device device);

  const at::Device& device() const { return device_; }
  bool on_host() const { return device_.is_cpu(); }

  // Says whether the device has failed; nothing that was on it can be used any more.
  bool lost() const { return *lost_; }

  // Sets lost() if the device answers nothing any more. To be called after an error of the device.
  void CheckDevice() const;

  // What the calling thread asks for goes to the replica's own stream as long as this lives.
  class Entered {
   public:
    explicit Entered(const Placement& placement) {
      if (!placement.on_host()) guard_.emplace(placement.streams_->compute);
    }

   private:
    std::optional<c10::StreamGuard> guard_;
  };

  // Copies a tensor of the host to the device. It is not waited for that if it is a HostTensor().
  at::Tensor ToDevice(const at::Tensor& tensor) const;

  // Copies a tensor of the device to memory of the host. On a device it is written once a Finished
  // that is made after this call has been waited for.
  at::Tensor ToHost(const at::Tensor& tensor) const;
  // Copies like ToHost() into a tensor that HostTensor() gave.
  void CopyToHost(const at::Tensor& tensor, const at::Tensor& target) const;
  // Copies tensors that the device has finished to one of the host, their numbers one after the
  // other, without waiting for what it computes now.
  at::Tensor Fetch(const std::vector<at::Tensor>& tensors) const;
  // Gives memory of the host that the replica's streams copy from and to by themselves. It may be
  // freed at any time, on any thread.
  at::Tensor HostTensor(at::IntArrayRef shape, at::ScalarType type) const;

  // Lets what is computed from now on overwrite what is being copied to the host.
  void WaitForCopies() const;

  // Waits for all that was copied to the host before it was made. On the CPU there is nothing to
  // wait for.
  class Finished {
   public:
    explicit Finished(const Placement& placement);
    void Wait() const;

   private:
    std::optional<c10::Event> event_;
  };

  // Tells the device of the layout; nothing on the CPU.
  void AddTable(PlacedLayout& layout) const;

  // Allocates memory that ToDevice() copies from without a detour: pinned, on a device.
  std::pair<Tensor, std::byte*> Allocate(DType dtype, const Shape& shape) const;

 private:
  struct Streams {
    explicit Streams(const at::Device& device);
    ~Streams();
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    c10::Stream compute;
    c10::Stream copy_in;
    c10::Stream copy_out;
    TensorsInUse in_use;
  };

  at::Device device_;
  std::shared_ptr<Streams> streams_;  // null on the CPU
  std::shared_ptr<std::atomic<bool>> lost_ =
      std::make_shared<std::atomic<bool>>(false);  // the same to all copies
};

}  // namespace linserve
