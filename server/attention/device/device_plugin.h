#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Stream.h>
#include <torch/headeronly/version.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/rows/placed_layout.h"

namespace linserve {

// What a kind of device needs besides LibTorch's own operators comes from a library that is opened
// at run time: so a host without such a device loads none of it. liblinserve_cuda.so is for NVIDIA
// GPUs.

// This number changes whenever what follows does: a library and a program that differ are not used
// together.
inline constexpr uint32_t kDevicePluginAbi = 7;

// Counts bytes of one device's memory.
struct DeviceMemory {
  int64_t used = 0;      // by tensors
  int64_t reserved = 0;  // by the pool that they come from
  int64_t limit = 0;     // of the pool
};

// Holds work that was recorded once and is repeated as it is, on the same memory.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void Replay() = 0;
};

// Describes the linear attention of all sequences of a batch. Its formulas stand in
// causal_linear_attention.h, linear_attention.h and, with `elu`, kernel_attention.h.
struct PackedLinearAttention {
  at::Tensor queries;  // [rows, heads · dim_head]; a row's numbers lie side by side
  at::Tensor keys;     // [rows of keys, heads · dim_head], as the values
  at::Tensor values;
  at::Tensor mask;  // BOOL [rows of keys]; undefined: all
  int64_t heads;
  const LayoutTable& layout;
  const LayoutTable& key_layout;
  bool elu;        // features are elu + 1; otherwise softmaxed queries, and exp of the keys or (not
                   // causal) their softmax over the length
  bool causal;     // both layouts are the same one
  int64_t bucket;  // of causal attention
  std::optional<double> floor;  // of the weights' sum that divides; nullopt: it is not divided
};

// Kernels read what belongs to so many distances more than there are in a layout's longest
// sequence.
inline constexpr int64_t kDistancesBeyond = 64;

// Describes the softmax attention of all sequences of a batch, each among its own rows:
//   softmax((queries · keysᵀ + distances) · scale) · values
struct PackedSoftmaxAttention {
  at::Tensor queries;  // [rows, heads · dim_head]; a row's numbers lie side by side
  at::Tensor keys;     // [rows, key_heads · dim_head]; heads / key_heads neighbours share one
  at::Tensor values;   // as the keys
  int64_t heads;
  const LayoutTable& layout;
  double scale;
  int64_t window = -1;  // rows that a query sees on either side; -1: all
  bool causal = false;  // it sees none behind its own
  // F32 [heads, 2 · length - 1], for distances from 1 - length on, where the length is at least
  // kDistancesBeyond more than the longest sequence's; undefined: zeros.
  at::Tensor distances{};
};

// Heads of these widths have kernels of softmax attention on a GPU: multiples of kVectorNumbers, up
// to kWidestHead for our own kernel and kWidestLibraryHead for LibTorch's.
inline constexpr int64_t kVectorNumbers = 8;  // numbers that are read at once
inline constexpr int64_t kWidestHead = 128;
inline constexpr int64_t kWidestLibraryHead = 256;

// Says whether there is such a kernel for heads of this width in any layout: with `differs`, where
// scores depend on distances, or queries do not see all keys.
constexpr bool AttendsOnDevices(int64_t dim_head, bool differs) {
  return dim_head % kVectorNumbers == 0 && dim_head <= (differs ? kWidestHead : kWidestLibraryHead);
}

// Is a norm of rows over their width (torch.nn.LayerNorm), all [width].
struct RowNorm {
  at::Tensor weight;
  at::Tensor bias;     // undefined: none
  at::Tensor lacking;  // is added to each row before; undefined: nothing
  double epsilon;
};

// Says which rows become one vector each: I32, on the device. A vector is made of at least one row.
struct RowsToPool {
  at::Tensor starts;  // [vectors]
  at::Tensor counts;  // [vectors]
  at::Tensor chosen;  // rows, of which starts and counts are then places; undefined: all rows
  bool largest;       // the largest number of each column; otherwise their mean
};

// Holds kernels of our own, by what they compute; the functions of attention/ that call them have
// the formulas. Where there is no kernel, or it gives an undefined tensor since it does not take
// these arguments, LibTorch's operators compute the same.
struct DeviceKernels {
  // Computes ProjectLength(), and leaves rows of padding as they are.
  at::Tensor (*project_length)(const at::Tensor& rows, const at::Tensor& projection,
                               const LayoutTable& layout) = nullptr;
  // Computes AttendToSlots() without a mask; rows of padding become zeros.
  at::Tensor (*attend_to_slots)(const at::Tensor& queries, const at::Tensor& keys,
                                const at::Tensor& values, int64_t heads,
                                const LayoutTable& layout) = nullptr;
  // Writes the sequences' rows of out [rows, heads · dim_head]. False: it does not take these.
  bool (*linear_attention)(const PackedLinearAttention& call, const at::Tensor& out) = nullptr;
  // Returns [rows, heads · dim_head]; rows of padding are finite.
  at::Tensor (*softmax_attention)(const PackedSoftmaxAttention& call) = nullptr;
  // Adds table[places[r]] to each row r of rows [rows, width]. False: it does not take these.
  bool (*add_positions)(const at::Tensor& rows, const at::Tensor& table,
                        const at::Tensor& places) = nullptr;
  // Turns the heads of each row r as Rotate() says, by table[places[r]]. False: it does not take
  // these.
  bool (*rotate)(const at::Tensor& rows, int64_t heads, const at::Tensor& table,
                 const at::Tensor& places) = nullptr;
  // Returns the norm of each row of rows [rows, width].
  at::Tensor (*norm)(const at::Tensor& rows, const RowNorm& norm) = nullptr;
  // Pools rows [rows, width] to F32 [vectors, width].
  at::Tensor (*pool)(const at::Tensor& rows, const RowsToPool& which) = nullptr;
};

struct DevicePlugin {
  uint32_t abi = kDevicePluginAbi;  // stays first, whatever else changes
  // The library was built with this version of LibTorch; tensors pass between library and program.
  const char* torch_version = TORCH_VERSION;
  c10::DeviceType type = c10::DeviceType::CPU;

  // Returns how many devices there are. UNAVAILABLE says why there is none: no driver, no device.
  absl::StatusOr<int64_t> (*count)() = nullptr;
  // Describes a device in words, such as "NVIDIA H200, 139.8 GiB, sm_90".
  std::string (*describe)(int64_t index) = nullptr;
  // Returns why LibTorch or our kernels cannot use the device, or OK.
  absl::Status (*usable)(int64_t index) = nullptr;
  // Says whether matrix products in BF16 are fast on the device.
  bool (*has_bfloat16)(int64_t index) = nullptr;
  DeviceMemory (*memory)(int64_t index) = nullptr;
  // Gives memory of the host that devices copy from and to by themselves. It is never freed.
  void* (*pin)(size_t bytes) = nullptr;
  // Limits the bytes that the pool may hold.
  void (*limit_memory)(int64_t index, int64_t bytes) = nullptr;
  // Gives a stream that nobody else has until it is given back.
  c10::Stream (*take_stream)(int64_t index) = nullptr;
  void (*give_stream)(const c10::Stream& stream) = nullptr;
  // Records what `work` does on the calling thread's stream. It must neither wait for the device
  // nor read from it. With `neighbour` it is recorded in memory that both use in turns: they must
  // never be replayed at once, nor may what one has computed be read after the other's replay.
  std::unique_ptr<DeviceGraph> (*capture)(const std::function<void()>& work,
                                          const DeviceGraph* neighbour) = nullptr;

  DeviceKernels kernels;
};

// Such a library exports this function alone.
using DevicePluginEntry = const DevicePlugin* (*)();
inline constexpr const char* kDevicePluginEntry = "linserve_device_plugin";

// Opens liblinserve_NAME.so in the directory, once per process; it stays open. To be called before
// LibTorch is used at all, which remembers what devices there were when it was first asked.
// NOT_FOUND: there is no such library. FAILED_PRECONDITION: it is of another build, or a library
// that it needs is missing.
absl::StatusOr<const DevicePlugin*> OpenDevicePlugin(const std::string& name,
                                                     const std::string& directory);

// Returns the plug-in that is open for this type of device; nullptr if there is none.
const DevicePlugin* FindDevicePlugin(c10::DeviceType type);

// Throws where a pass is being recorded: what follows would bake in the lengths.
void CheckNotRecording(const PlacedLayout& layout);

// Returns the kernels of the plug-in that is open for the tensor's device; none on the CPU.
const DeviceKernels& KernelsFor(const at::Tensor& tensor);

}  // namespace linserve
