#include "models/linear_attention_transformer/images/image_linear_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attention/linear/image_attention.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "models/linear_attention_transformer/images/image_blocks.h"
#include "models/linear_attention_transformer/images/image_convolution.h"

namespace linserve::linear_attention_transformer {
namespace {

struct ImageOptions {
  int64_t chan;
  int64_t chan_out;
  int64_t kernel_size;
  int64_t key_dim;
  int64_t value_dim;
  int64_t heads;
  bool norm_queries;

  static ImageOptions From(Params& params);
};

ImageOptions ImageOptions::From(Params& params) {
  ImageOptions options{};
  options.chan = params.Positive("chan");
  options.chan_out = params.Positive("chan_out", options.chan);
  options.kernel_size = params.Positive("kernel_size", 1);
  // The package takes for granted that q, k and v are of the image's size, which they are with no
  // other padding or stride.
  if (options.kernel_size % 2 == 0) params.Fail("kernel_size", "an odd number");
  const int64_t half = options.kernel_size / 2;
  if (params.NotNegative("padding", 0) != half) {
    params.Fail("padding", std::to_string(half) + ", half of kernel_size - 1");
  }
  if (params.Positive("stride", 1) != 1) params.Fail("stride", "1");
  options.key_dim = params.Positive("key_dim", 64);
  options.value_dim = params.Positive("value_dim", 64);
  options.heads = params.Positive("heads", 8);
  options.norm_queries = params.Flag("norm_queries", true);
  return options;
}

// Holds images [images, chan, height, width], cut in stripes along the longer side.
struct Images {
  explicit Images(at::Tensor whole)
      : pixels(std::move(whole)), axis(pixels.size(2) >= pixels.size(3) ? 2 : 3) {}

  int64_t positions() const { return pixels.size(axis); }
  int64_t across() const { return pixels.size(axis == 2 ? 3 : 2); }

  at::Tensor pixels;
  int64_t axis;
};

class ImageLinearAttention {
 public:
  explicit ImageLinearAttention(const ImageOptions& options)
      : options_(options),
        scale_(std::pow(static_cast<double>(options.key_dim), -0.25)),
        to_q_(options.chan, options.heads * options.key_dim, options.kernel_size),
        to_k_(options.chan, options.heads * options.key_dim, options.kernel_size),
        to_v_(options.chan, options.heads * options.value_dim, options.kernel_size),
        to_out_(options.heads * options.value_dim, options.chan_out, options.kernel_size) {}

  void Declare(const Scope& scope) {
    to_q_.Declare(scope / "to_q", scale_);
    to_k_.Declare(scope / "to_k", scale_);
    to_v_.Declare(scope / "to_v");
    to_out_.Declare(scope / "to_out");
  }

  double Flops(int64_t pixels) const {
    const int64_t convolutions = to_q_.Flops() + to_k_.Flops() + to_v_.Flops() + to_out_.Flops();
    const int64_t products = 4 * options_.heads * options_.key_dim * options_.value_dim;
    return static_cast<double>(convolutions + products) * static_cast<double>(pixels);
  }

  // Pixels that are computed at once: bounds each tensor of heads to 16 MiB in F32, which malloc
  // still keeps for the next one.
  int64_t PixelsAtOnce() const {
    constexpr int64_t kElements = int64_t{1} << 22;
    return std::max<int64_t>(1, kElements / std::max(to_q_.outputs, to_v_.outputs));
  }

  // Takes images [images, chan, height, width] and, if defined, their contexts [images, chan,
  // pixels], and writes `result` [images, chan_out, height, width].
  void Forward(const at::Tensor& x, const at::Tensor& contexts, at::Tensor result) const {
    if (to_q_.of_pixels.packed) return ForwardByBlocks(x, contexts, result);
    const Images images(x);
    ImageContext context;
    AddKeys(images, scale_, context);
    if (contexts.defined()) {
      // The package makes it an image of height 1 and leaves its keys unscaled.
      AddKeys(Images(contexts.unsqueeze(2)), 1, context);
    }
    ForEachStripe(images, [&](Stripe stripe) {
      result.narrow(images.axis, stripe.begin, stripe.size())
          .copy_(Result(images, stripe, context.Sum()));
    });
  }

 private:
  // Images that give each thread a block at most are computed side by side, if all threads have
  // one.
  void ForwardByBlocks(const at::Tensor& x, const at::Tensor& contexts,
                       const at::Tensor& result) const {
    const ImageByBlocks blocks{.to_q = to_q_.of_pixels,
                               .to_k = to_k_.of_pixels,
                               .to_v = to_v_.of_pixels,
                               .to_out = to_out_.of_pixels,
                               .heads = options_.heads,
                               .scale = scale_,
                               .softmax_queries = options_.norm_queries};
    const auto compute = [&](int64_t image, float*) {
      const auto pixels = [&](const at::Tensor& all) {
        return all.defined() ? all.select(0, image).flatten(1) : all;
      };
      blocks.Compute(pixels(x), pixels(contexts), pixels(result));
    };
    const int64_t threads = BlockThreads();
    if (x.size(0) >= threads && x.size(2) * x.size(3) <= kBlockRows * threads) {
      return ForSideBySide(0, x.size(0), 0, compute);
    }
    for (int64_t image = 0; image < x.size(0); ++image) compute(image, nullptr);
  }

  template <typename Function>
  void ForEachStripe(const Images& images, const Function& function) const {
    const int64_t size = std::max<int64_t>(1, PixelsAtOnce() / images.across());
    for (int64_t begin = 0; begin < images.positions(); begin += size) {
      function(Stripe{begin, std::min(begin + size, images.positions())});
    }
  }

  // Makes [images, heads, features, pixels] of [images, heads · features, height, width].
  at::Tensor Heads(const at::Tensor& image) const {
    return image.flatten(2).unflatten(1, {options_.heads, image.size(1) / options_.heads});
  }

  void AddKeys(const Images& images, double scale, ImageContext& context) const {
    const Stripe whole = {0, images.positions()};
    ForEachStripe(images, [&](Stripe stripe) {
      context.Add(Heads(to_k_(images.pixels, images.axis, whole, stripe)).mul_(scale),
                  Heads(to_v_(images.pixels, images.axis, whole, stripe)));
    });
  }

  // What to_out makes of a stripe depends on its neighbours, too.
  at::Tensor Result(const Images& images, Stripe stripe, const at::Tensor& context) const {
    const Stripe wide = stripe.Widened(to_out_.halo(), images.positions());
    const at::Tensor queries =
        to_q_(images.pixels, images.axis, {0, images.positions()}, wide).mul_(scale_);
    const at::Tensor attended = AttendToContext(Heads(queries), context, options_.norm_queries);
    const at::Tensor image =
        attended.reshape({queries.size(0), to_out_.inputs, queries.size(2), queries.size(3)});
    return to_out_(image, images.axis, wide, stripe);
  }

  ImageOptions options_;
  double scale_;
  ImageConvolution to_q_, to_k_, to_v_, to_out_;
};

class ImageNetwork : public Network {
 public:
  explicit ImageNetwork(const ImageOptions& options) : options_(options), attention_(options) {}

  void Declare(const Scope& scope) override { attention_.Declare(scope); }

  Signature signature() const override {
    const Axis h = Axis::Ragged('h');
    const Axis w = Axis::Ragged('w');
    Signature signature;
    signature.inputs = {{.name = "x", .axes = {Axis::Fixed(options_.chan), h, w}},
                        {.name = "context",
                         .axes = {Axis::Fixed(options_.chan), Axis::Ragged('c')},
                         .optional = true,
                         .folds = true}};
    signature.outputs = {{.name = "y", .axes = {Axis::Fixed(options_.chan_out), h, w}}};
    return signature;
  }

  double Flops(int64_t length) const override { return attention_.Flops(length); }

  NetworkNotes Notes() const override {
    return {.facts = {{"a token", "is a pixel"}}, .warnings = {}};
  }

  SessionPlan Sessions() const override { return SessionPlan::Refused("an image is no sequence"); }

  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class ImagePass;

  ImageOptions options_;
  ImageLinearAttention attention_;
};

// Small images are computed together, and large ones one by one; each time is a step.
class ImageNetwork::ImagePass : public Pass {
 public:
  ImagePass(const ImageNetwork& network, TensorBatch batch)
      : network_(network), batch_(std::move(batch)) {
    std::vector<int64_t> shape = batch_["x"].sizes().vec();
    int64_t pixels = shape[2] * shape[3];
    if (batch_.Has("context")) {
      pixels = std::max(pixels, batch_["context"].size(2));
    }
    together_ = std::max<int64_t>(1, network.attention_.PixelsAtOnce() / pixels);
    shape[1] = network.options_.chan_out;
    result_ = at::empty(shape, batch_["x"].options());
  }

  bool Step() override {
    const int64_t count = std::min(together_, batch_.size - done_);
    const auto part = [&](const at::Tensor& all) {
      return all.defined() ? all.narrow(0, done_, count) : all;
    };
    network_.attention_.Forward(part(batch_["x"]), part(batch_.Find("context")), part(result_));
    done_ += count;
    return done_ < batch_.size;
  }

  at::Tensor Output(const std::string&, int64_t begin, int64_t end) override {
    return result_.narrow(0, begin, end - begin);
  }

 private:
  const ImageNetwork& network_;
  TensorBatch batch_;
  int64_t together_;
  int64_t done_ = 0;
  at::Tensor result_;
};

std::unique_ptr<Pass> ImageNetwork::Begin(TensorBatch batch) const {
  return std::make_unique<ImagePass>(*this, std::move(batch));
}

}  // namespace

std::unique_ptr<Network> MakeImageLinearAttention(Params& params) {
  return std::make_unique<ImageNetwork>(ImageOptions::From(params));
}

}  // namespace linserve::linear_attention_transformer
