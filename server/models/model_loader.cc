#include "models/model_loader.h"

#include <torch/headeronly/version.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "attention/device/device_plugin.h"
#include "attention/products/bf16_product.h"
#include "attention/rows/aten.h"
#include "core/system/heap.h"
#include "core/system/processors.h"
#include "core/threads/mutex.h"
#include "models/built_network.h"
#include "models/caught.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/checkpoint_files.h"
#include "models/checkpoint/fingerprint.h"
#include "models/config/config_error.h"
#include "models/fastest_products.h"
#include "models/forward/torch_model.h"
#include "models/model_directory.h"
#include "models/network/packed_weight.h"
#include "models/placement/placement.h"
#include "models/placement/tensor_bridge.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

bool HasFastBFloat16(const at::Device& device) {
  return FindDevicePlugin(device.type())->has_bfloat16(device.index());
}

// Returns what the option calls a type of ProductTypes().
const char* OptionOf(DType type) {
  return type == DType::kF32 ? "f32" : type == DType::kBF16 ? "bf16" : "int8";
}

// Returns what the CPU computes products in.
DType ProductsOnCpu(const std::string& dtype, const ParameterList& parameters) {
  if (dtype == "default") return DType::kF32;
  if (dtype == "auto") return FastestProducts(parameters, /*int8_allowed=*/false);
  if (dtype == "auto:int8") return FastestProducts(parameters, /*int8_allowed=*/true);
  for (const DType type : ProductTypes()) {
    if (dtype == OptionOf(type)) return type;
  }
  throw ConfigError("dtype \"" + dtype + "\" is not for this CPU, which computes in " +
                    absl::StrJoin(TypesOfCpu(), ", "));
}

DType ComputeType(const std::string& dtype, const at::Device& device,
                  const ParameterList& parameters) {
  if (device.is_cpu()) return ProductsOnCpu(dtype, parameters);
  if (dtype == "bf16") return DType::kBF16;
  if (dtype == "f32") return DType::kF32;
  if (dtype == "f16") return DType::kF16;
  if (dtype == "default" || dtype.starts_with("auto")) {
    return HasFastBFloat16(device) ? DType::kBF16 : DType::kF16;
  }
  throw ConfigError("dtype \"" + dtype + "\" is not for GPUs, which compute in f32, bf16 or f16");
}

std::optional<at::Device> DeviceNamed(const std::string& name) {
  try {
    return at::Device(name);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

at::Device ParseDevice(const std::string& name) {
  const std::optional<at::Device> device = DeviceNamed(name);
  const bool known = device && (device->is_cpu() || FindDevicePlugin(device->type()) != nullptr);
  if (known) return *device;
  throw ConfigError("device \"" + name + "\" is neither cpu nor one whose plug-in is open");
}

// Tells LibTorch to round nothing to fewer digits than the type has, as it does by default.
void ComputeExactly() {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
}

// Returns the type that a tensor is of, in a model that is computed in `computed`.
DType TypeOf(const Parameter& parameter, DType computed, const at::Device& device) {
  if (!device.is_cpu() || parameter.kept == Kept::kPacked) return computed;
  const bool rounded = parameter.kept == Kept::kRounded && computed != DType::kF32;
  return rounded ? DType::kBF16 : DType::kF32;
}

// Says what the engine is told of the model as it is to be computed with.
ModelInfo InfoOf(const BuiltNetwork& built, const ModelConfig& config,
                 const ModelLoadOptions& options, const at::Device& device) {
  ModelInfo info = built.Describe(config.network.architecture);
  info.device = options.device;
  info.dtype = ComputeType(options.dtype, device, built.parameters);
  for (const Parameter& parameter : built.parameters) {
    const DType type = TypeOf(parameter, info.dtype, device);
    info.bytes -= static_cast<int64_t>(ByteSize(DType::kF32) - ByteSize(type)) *
                  ElementCount(parameter.shape);
  }
  info.signature.allow_nonfinite = options.allow_nonfinite;
  return info;
}

// Says what of the names and tensors of the file is not the model's.
void LogLeftOut(const std::string& directory, const AlignedCheckpoint& checkpoint) {
  constexpr size_t kMostNamed = 8;
  const std::vector<std::string>& names = checkpoint.left_out;
  if (!checkpoint.prefix().empty()) {
    Log(LogLevel::kInfo, "checkpoint prefix removed",
        {{"model", directory}, {"prefix", checkpoint.prefix()}});
  }
  if (names.empty()) return;
  const auto end = names.begin() + static_cast<int64_t>(std::min(names.size(), kMostNamed));
  Log(LogLevel::kInfo, "tensors of the checkpoint left out",
      {{"model", directory},
       {"tensors", std::ssize(names)},
       {"first", absl::StrJoin(names.begin(), end, ", ")}});
}

// Holds what replicas on the CPU share.
struct Loaded {
  std::shared_ptr<const Network> network;
  ModelInfo info;
};

// Makes the calling thread one that runs models.
void PrepareThread(const ModelLoadOptions& options) {
  // It is asked first: a thread's first question sets its number to what another thread set last.
  at::get_num_threads();
  at::set_num_threads(static_cast<int>(options.threads > 0 ? options.threads : Processors()));
  // Products of denormal numbers, which softmaxes are full of, take fifteen times as long. Threads
  // that help this one do the same.
  at::Context::setFlushDenormal(true);
}

absl::StatusOr<Loaded> Load(const std::string& directory, const ModelLoadOptions& options,
                            const Placement& placement) {
  auto config = ReadModelDirectory(directory);
  if (!config.ok()) return config.status();
  ComputeExactly();
  BuiltNetwork built = BuiltNetwork::From(config->network);
  ModelInfo info = InfoOf(built, *config, options, placement.device());
  if (options.accept) {
    if (absl::Status status = options.accept(info.signature); !status.ok()) return status;
  }
  auto file = ReadModelTensors(directory, *config);
  if (!file.ok()) return file.status();
  AlignedCheckpoint checkpoint =
      AlignCheckpoint(built.parameters, *std::exchange(file, SafetensorsFile()), config->names);
  const bool fits = checkpoint.difference.empty();
  if (fits) LogLeftOut(directory, checkpoint);
  if (const std::string warning = checkpoint.Warning(); fits && !warning.empty()) {
    Log(LogLevel::kWarning, warning, {{"model", directory}});
  }
  if (fits && !options.allow_nonfinite) {
    const std::string fault = NonfiniteWeights(built.parameters, checkpoint, info.dtype);
    if (!fault.empty()) throw ConfigError(fault);
  }
  for (const auto& warnings : {built.network->Notes().warnings, config->warnings}) {
    for (const std::string& warning : warnings) {
      Log(LogLevel::kWarning, warning, {{"model", directory}});
    }
  }
  if (placement.on_host() && info.dtype != DType::kF32) {
    Log(LogLevel::kInfo, "products of attention measured",
        {{"model", directory},
         {"chosen", std::string(Name(Bf16KernelsPay() ? DType::kBF16 : DType::kF32))}});
  }
  info.fingerprint = FingerprintOf(config->network, info.dtype, checkpoint.tensors);
  const at::ScalarType usual = TensorType(info.dtype, placement.device());
  const LoadingHeap heap;
  const bool rounds = placement.on_host() && info.dtype != DType::kF32;
  LoadParameters(
      built.parameters, std::move(checkpoint),
      {.usual = usual, .rounded = rounds ? at::kBFloat16 : usual, .products = info.dtype},
      placement.device());
  return Loaded{std::move(built.network), std::move(info)};
}

// Loads a model once for all replicas on the CPU, as long as one of them lives. Thread-safe.
class SharedModel {
 public:
  template <typename Load>
  absl::StatusOr<Loaded> Get(const Load& load) {
    const MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
    if (auto network = network_.lock()) return Loaded{std::move(network), info_};
    absl::StatusOr<Loaded> loaded = load();
    if (loaded.ok()) {
      network_ = loaded->network;
      info_ = loaded->info;
    }
    failure_ = loaded.status();
    return loaded;
  }

 private:
  Mutex mutex_;
  std::weak_ptr<const Network> network_ ABSL_GUARDED_BY(mutex_);
  ModelInfo info_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<Model>> LoadReplica(const std::string& directory,
                                                   const ModelLoadOptions& options,
                                                   SharedModel& shared) {
  return Caught(directory, [&]() -> absl::StatusOr<std::unique_ptr<Model>> {
    const Placement placement(ParseDevice(options.device));
    const Placement::Entered entered(placement);
    PrepareThread(options);
    const auto load = [&] {
      return Caught(directory, [&] { return Load(directory, options, placement); });
    };
    auto loaded = placement.on_host() ? shared.Get(load) : load();
    if (!loaded.ok()) return loaded.status();
    return MakeTorchModel(std::move(loaded->network), std::move(loaded->info), placement);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& directory,
                                                 const ModelLoadOptions& options) {
  SharedModel alone;
  return LoadReplica(directory, options, alone);
}

absl::StatusOr<ModelWeights> WeightsOf(const std::string& directory,
                                       const ModelLoadOptions& options) {
  return Caught(directory, [&]() -> absl::StatusOr<ModelWeights> {
    auto config = ReadModelDirectory(directory);
    if (!config.ok()) return config.status();
    const BuiltNetwork built = BuiltNetwork::From(config->network);
    const ModelInfo info = InfoOf(built, *config, options, ParseDevice(options.device));
    // The file is in memory until each tensor has the form that is computed with.
    return ModelWeights{std::max(info.bytes, CheckpointBytes(directory)), info.dtype};
  });
}

ModelFactory ReplicasOf(const std::string& directory, ModelLoadOptions options,
                        std::vector<std::string> devices) {
  return [directory, options = std::move(options), devices = std::move(devices),
          shared = std::make_shared<SharedModel>()](int64_t replica) {
    ModelLoadOptions own = options;
    own.device = devices[static_cast<size_t>(replica) % devices.size()];
    return LoadReplica(directory, own, *shared);
  };
}

std::vector<std::string> TypesOfCpu() {
  std::vector<std::string> types;
  for (const DType type : ProductTypes()) types.emplace_back(OptionOf(type));
  return types;
}

std::string TorchVersion() { return TORCH_VERSION; }

}  // namespace linserve
