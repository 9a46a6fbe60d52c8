#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "arena.h"
#include "attention/device/device_plugin.h"
#include "control.h"
#include "cuda/grid.h"
#include "cuda/kernels/kernel_calls.h"
#include "cuda/kernels/linear_attention_calls.h"
#include "cuda/kernels/row_calls.h"
#include "cuda/kernels/softmax_attention_calls.h"
#include "simulated_device.h"

namespace linserve {
namespace {

absl::StatusOr<int64_t> Count() { return 2; }

std::string Describe(int64_t index) { return "simulated device " + std::to_string(index); }

bool HasBfloat16(int64_t /*index*/) { return true; }

DeviceMemory Memory(int64_t /*index*/) {
  const Arena& arena = Arena::Get();
  return {.used = arena.used(), .reserved = arena.used(), .limit = arena.limit()};
}

void LimitMemory(int64_t /*index*/, int64_t bytes) { Arena::Get().SetLimit(bytes); }

c10::Stream TakeStream(int64_t index) {
  static std::atomic<c10::StreamId> last = 0;
  const c10::Device device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index));
  return c10::Stream(c10::Stream::UNSAFE, device, ++last);
}

void GiveStream(const c10::Stream& /*stream*/) {}

// The simulated device runs the GPU's kernels block after block, as if it had so many
// multiprocessors.
constexpr int64_t kMultiprocessors = 4;

template <typename T, typename Block>
void RunBlocks(const cuda::BlockIndex& grid, int shared_bytes, const Block& block) {
  std::vector<T> shared(static_cast<size_t>(shared_bytes) / sizeof(T));
  cuda::ForGrid(grid, [&](const cuda::BlockIndex& at) { block(at, shared.data()); });
}

at::Tensor ProjectLength(const at::Tensor& rows, const at::Tensor& projection,
                         const LayoutTable& layout) {
  const auto run = []<typename T>(const cuda::ProjectLengthArguments<T>& arguments,
                                  const cuda::BlockIndex& grid, int64_t elements) {
    RunOnSimulated([arguments, grid] {
      RunBlocks<T>(grid, cuda::ProjectLength<T>::kSharedBytes, [&](const auto& at, T* shared) {
        cuda::ProjectLength<T>::Run(arguments, at, shared);
      });
    });
    if (arguments.sizes.parts == 1) return;
    RunOnSimulated([arguments, elements] {
      for (int64_t i = 0; i < elements; ++i) cuda::AddShares(arguments, i);
    });
  };
  return cuda::CallProjectLength(rows, projection, layout, kMultiprocessors, run);
}

struct SoftmaxAttentionKernels {
  template <int D, bool kDistances, typename T>
  void operator()(const cuda::SoftmaxAttentionArguments<T>& arguments,
                  const cuda::BlockIndex& grid) const {
    using Kernel = cuda::SoftmaxAttention<T, D, kDistances>;
    RunOnSimulated([arguments, grid] {
      RunBlocks<T>(grid, Kernel::kSharedBytes,
                   [&](const auto& at, T* shared) { Kernel::Run(arguments, at, shared); });
    });
  }
};

at::Tensor AttendToSlots(const at::Tensor& queries, const at::Tensor& keys,
                         const at::Tensor& values, int64_t heads, const LayoutTable& layout) {
  return cuda::CallAttendToSlots(queries, keys, values, heads, layout, SoftmaxAttentionKernels());
}

struct LinearAttentionKernels {
  template <typename Kernel, typename T>
  void Start(const cuda::LinearAttentionArguments<T>& arguments,
             const cuda::BlockIndex& grid) const {
    RunOnSimulated([arguments, grid] {
      std::vector<float> floats(Kernel::kFloats);
      RunBlocks<T>(grid, Kernel::kSharedBytes, [&](const auto& at, T* shared) {
        Kernel::Run(arguments, at, cuda::SharedMemory<T>{shared, floats.data()});
      });
    });
  }

  template <int D, typename T>
  void AddParts(const cuda::LinearAttentionArguments<T>& arguments, int64_t elements) const {
    RunOnSimulated([arguments, elements] {
      for (int64_t i = 0; i < elements; ++i) cuda::AddParts<D>(arguments, i);
    });
  }
};

bool LinearAttention(const PackedLinearAttention& call, const at::Tensor& out) {
  return cuda::CallLinearAttention(call, out, kMultiprocessors, LinearAttentionKernels());
}

// Returns the tensor as the host sees it while the device computes.
at::Tensor OnHost(const at::Tensor& tensor) {
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.dtype()));
}

// Computes what LibTorch's kernel does on a GPU.
at::Tensor AttendByLibrary(const PackedSoftmaxAttention& call) {
  at::Tensor attended = at::empty(call.queries.sizes(), call.queries.options());
  RunOnSimulated([queries = OnHost(call.queries), keys = OnHost(call.keys),
                  values = OnHost(call.values), out = OnHost(attended),
                  starts = OnHost(call.layout.starts), lengths = OnHost(call.layout.lengths),
                  heads = call.heads, window = call.window, causal = call.causal,
                  scale = call.scale] {
    out.zero_();
    for (int64_t i = 0; i < starts.size(0); ++i) {
      const int64_t length = lengths[i].item<int32_t>();
      if (length == 0) continue;
      const auto part = [&](const at::Tensor& rows) {
        return rows.narrow(0, starts[i].item<int32_t>(), length);
      };
      const auto by_head = [&](const at::Tensor& rows) {
        return part(rows)
            .to(at::kFloat)
            .unflatten(1, {-1, queries.size(1) / heads})
            .transpose(0, 1)
            .unsqueeze(0);
      };
      std::optional<at::Tensor> visible;
      const int64_t reach = window >= 0 ? window : length;
      if (window >= 0 || causal) {
        visible = at::ones({length, length}, at::kBool).tril(causal ? 0 : reach).triu(-reach);
      }
      part(out).copy_(at::scaled_dot_product_attention(by_head(queries), by_head(keys),
                                                       by_head(values), visible, /*dropout_p=*/0,
                                                       /*is_causal=*/false, scale,
                                                       /*enable_gqa=*/true)
                          .squeeze(0)
                          .transpose(0, 1)
                          .flatten(1));
    }
  });
  return attended;
}

at::Tensor SoftmaxAttention(const PackedSoftmaxAttention& call) {
  return cuda::CallSoftmaxAttention(call, SoftmaxAttentionKernels(),
                                    [&] { return AttendByLibrary(call); });
}

bool AddPositions(const at::Tensor& rows, const at::Tensor& table, const at::Tensor& places) {
  return cuda::CallAddPositions(rows, table, places, [](const auto& arguments, int64_t vectors) {
    RunOnSimulated([arguments, vectors] {
      for (int64_t i = 0; i < vectors; ++i) cuda::AddPosition(arguments, i);
    });
  });
}

bool Rotate(const at::Tensor& rows, int64_t heads, const at::Tensor& table,
            const at::Tensor& places) {
  return cuda::CallRotate(rows, heads, table, places, [](const auto& arguments, int64_t vectors) {
    RunOnSimulated([arguments, vectors] {
      for (int64_t i = 0; i < vectors; ++i) cuda::RotatePairs(arguments, i);
    });
  });
}

at::Tensor Norm(const at::Tensor& rows, const RowNorm& norm) {
  return cuda::CallNorm(rows, norm,
                        []<int kReads, typename T>(const cuda::NormRowsArguments<T>& arguments,
                                                   const cuda::BlockIndex& grid) {
                          RunOnSimulated([arguments, grid] {
                            cuda::ForGrid(grid, [&](const cuda::BlockIndex& at) {
                              cuda::NormRows<T, kReads>::Run(arguments, at);
                            });
                          });
                        });
}

at::Tensor Pool(const at::Tensor& rows, const RowsToPool& which) {
  const auto run = []<typename T>(const cuda::PoolRowsArguments<T>& arguments,
                                  const cuda::BlockIndex& grid) {
    RunOnSimulated([arguments, grid] {
      std::vector<float> shared(cuda::PoolRows<T>::kFloats);
      cuda::ForGrid({grid.x, grid.y, 1}, [&](const cuda::BlockIndex& at) {
        cuda::PoolRows<T>::Run(arguments, at, shared.data());
      });
    });
  };
  return cuda::CallPool(rows, which, run);
}

absl::Status Usable(int64_t /*index*/) { return absl::OkStatus(); }

void* Pin(size_t bytes) { return std::aligned_alloc(4096, bytes); }

DevicePlugin Plugin() {
  RegisterSimulatedDevice();
  DevicePlugin plugin;
  plugin.type = c10::DeviceType::PrivateUse1;
  plugin.count = Count;
  plugin.describe = Describe;
  plugin.usable = Usable;
  plugin.has_bfloat16 = HasBfloat16;
  plugin.memory = Memory;
  plugin.pin = Pin;
  plugin.limit_memory = LimitMemory;
  plugin.take_stream = TakeStream;
  plugin.give_stream = GiveStream;
  plugin.capture = CaptureSimulated;
  plugin.kernels.project_length = ProjectLength;
  plugin.kernels.attend_to_slots = AttendToSlots;
  plugin.kernels.linear_attention = LinearAttention;
  plugin.kernels.softmax_attention = SoftmaxAttention;
  plugin.kernels.add_positions = AddPositions;
  plugin.kernels.rotate = Rotate;
  plugin.kernels.norm = Norm;
  plugin.kernels.pool = Pool;
  return plugin;
}

}  // namespace
}  // namespace linserve

// `--device simulated:0` opens the plug-in as liblinserve_cuda.so is opened.
extern "C" const linserve::DevicePlugin* linserve_device_plugin() {
  static const linserve::DevicePlugin plugin = linserve::Plugin();
  return &plugin;
}

extern "C" const linserve::SimulatedControl* linserve_simulated_control() {
  static const linserve::SimulatedControl control = {.launches = linserve::SimulatedLaunches,
                                                     .lose = linserve::LoseSimulated,
                                                     .stall = linserve::StallSimulated};
  return &control;
}
