#pragma once

#include <gmock/gmock.h>

#include "models/model_fixture.h"
#include "models/simulated.h"

namespace linserve {

// These compute on the simulated device, which counts what it is asked for, and can be lost.
class DeviceModelTest : public ModelFixture {
 protected:
  ~DeviceModelTest() override {
    simulated_.lose(1, false);
    simulated_.stall(false);
  }

  std::unique_ptr<Model> LoadOn(const std::string& device, const std::string& directory,
                                const std::string& dtype = "f32") {
    ModelLoadOptions options;
    options.device = device;
    options.dtype = dtype;
    return Load(directory, options);
  }

  // Expects of sequences of several lengths the rows that the CPU computes, which in BF16 have at
  // least this cosine.
  void ExpectTheRowsOfTheCpu(const std::string& architecture, const std::string& params,
                             const std::function<Item(int64_t)>& make, double least = 0.999) {
    SCOPED_TRACE(architecture + params);
    const std::string directory = Directory(architecture, params);
    const auto on_cpu = Load(directory);
    std::vector<Item> items;
    for (const int64_t length : {7, 1, 12, 12, 3}) items.push_back(make(length));
    const auto expected = Compute(*on_cpu, items);
    for (const char* dtype : {"f32", "bf16"}) {
      const auto on_device = LoadOn("simulated:0", directory, dtype);
      SCOPED_TRACE(dtype);
      ExpectCosines(Compute(*on_device, items), expected,
                    std::string(dtype) == "f32" ? 0.999 : least);
    }
  }

  // Expects them of a device whose passes were recorded, in BF16.
  void ExpectRecordedRowsOfTheCpu(const std::string& architecture, const std::string& params,
                                  const std::function<Item(int64_t)>& make) {
    SCOPED_TRACE(architecture + params);
    const std::string directory = Directory(architecture, params);
    const auto model = LoadOn("simulated:0", directory, "bf16");
    ASSERT_TRUE(model->Prepare().ok());
    std::vector<Item> items;
    for (const int64_t length : {5, 1, 9, 9}) items.push_back(make(length));
    ExpectCosines(Compute(*model, items, model->info().padding), Compute(*Load(directory), items),
                  0.99);
  }

  // Expects of each sequence's first output that the rows have at least this cosine to others.
  static void ExpectCosines(const std::vector<TensorMap>& computed,
                            const std::vector<TensorMap>& expected, double least) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& [name, rows] = *expected[i].begin();
      EXPECT_GE(SmallestCosine(*Convert(computed[i].at(name), DType::kF32), rows), least)
          << "sequence " << i;
    }
  }

  // Starts a batch of these, and computes it while the device does nothing: whoever waits for it
  // fails.
  void ExpectNoWaiting(Model& model, const std::vector<const Item*>& items) {
    const Padder padder(model.info().signature, Padding::kPacked);
    simulated_.stall(true);
    const auto forward = model.Start(padder.Pad(items, model.allocator()));
    ASSERT_TRUE(forward.ok()) << forward.status();
    for (bool done = false; !done;) {
      const auto advanced = (*forward)->Advance();
      ASSERT_TRUE(advanced.ok()) << advanced.status();
      done = *advanced;
    }
    simulated_.stall(false);
    EXPECT_TRUE((*forward)->TakeResults().ok());
  }

  // Expects that one layer more asks the device for at most so much more. `params` end with the
  // name of the argument that says how many there are.
  void ExpectLaunchesOfALayer(const std::string& architecture, const std::string& params,
                              int64_t most) {
    const auto launches = [&](int layers) {
      const std::string directory = Init(architecture, params + std::to_string(layers) + "}");
      return LaunchesOf(*LoadOn("simulated:0", directory, "bf16"), 40, Pooling::kMean);
    };
    EXPECT_LE(launches(3) - launches(2), most);
  }

  // Counts what a device is asked for by a batch of these, results included.
  int64_t LaunchesOf(Model& model, const std::vector<Item>& items,
                     Padding padding = Padding::kPacked) {
    Compute(model, items, padding);  // what is done once
    const int64_t before = simulated_.launches();
    Compute(model, items, padding);
    return simulated_.launches() - before;
  }

  // Counts it of so many sequences.
  int64_t LaunchesOf(Model& model, int64_t sequences, Pooling pooling) {
    std::vector<Item> items;
    for (int64_t i = 0; i < sequences; ++i) {
      items.push_back(Tokens(1 + i % 13, 30));
      items.back().options.pooling = pooling;
    }
    return LaunchesOf(model, items);
  }

  const SimulatedControl& simulated_ = Simulated();
};

}  // namespace linserve
