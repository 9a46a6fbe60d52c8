#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <vector>

namespace linserve {

// Keeps tensors of a device that another stream uses than the one that their memory comes from,
// until that stream has done with them. (With LibTorch's record_stream() it is the last owner who
// asks the device, where a failure ends the process.) It is used by one thread.
class TensorsInUse {
 public:
  // Keeps the tensor until `user` is through with what it was asked until now.
  void Keep(const at::Tensor& tensor, const c10::Stream& user);
  // Keeps it until nobody else has it, and `user` is through with what it was asked until then.
  void KeepForOthers(const at::Tensor& tensor, const c10::Stream& user);

  // Drops what is not in use any more. What LibTorch throws passes through.
  void Drop();

 private:
  struct Kept {
    at::Tensor tensor;
    c10::Stream user;
    c10::Event last_use;  // unrecorded, as long as others have the tensor
  };

  std::vector<Kept> kept_;
};

}  // namespace linserve
