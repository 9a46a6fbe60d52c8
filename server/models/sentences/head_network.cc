#include "models/sentences/head_network.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "attention/rows/aten.h"
#include "core/strings/quote.h"
#include "models/sentences/pooled_sequences.h"

namespace linserve {
namespace {

// Says what the labels of a head are.
const char* Title(ProblemType problem) {
  if (problem == ProblemType::kMultiLabel) return "classes, each by itself";
  return problem == ProblemType::kRegression ? "values" : "classes";
}

// Names labels for a reader, of many the first ones.
std::string Listed(const std::vector<std::string>& labels) {
  constexpr size_t kMostNamed = 8;
  const size_t named = std::min(labels.size(), kMostNamed);
  std::string text = std::to_string(labels.size()) + ": ";
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + Quoted(labels[i]);
  return text + (named < labels.size() ? ", ..." : "");
}

// Returns BOOL [rows]: which tokens are not this one, and the first one of each sequence.
at::Tensor OtherTokens(const at::Tensor& ids, int64_t token, const PlacedLayout& layout) {
  const at::Tensor starts = at::tensor(layout.starts, at::kLong).to(ids.device());
  return ids.ne(token).index_fill_(0, starts, true);
}

}  // namespace

class HeadNetwork::HeadPass : public Pass {
 public:
  HeadPass(const HeadNetwork& network, TensorBatch batch) : network_(network) {
    if (network.input_.HasRows()) layout_ = batch.axes.at(network.input_.axes[0].letter);
    const Head& head = network.head_;
    if (!head.hidden_too) mask_ = batch.Find(network.input_.mask);
    const at::Tensor pooled = head.pools_some ? batch.Find(kPoolingMask) : at::Tensor();
    if (pooled.defined()) mask_ = mask_.defined() ? mask_.logical_and(pooled) : pooled;
    if (head.pad_token) mask_ = OtherTokens(batch["x"], *head.pad_token, layout_);
    encoder_ = network.encoder_->Begin(std::move(batch));
  }

  bool Step() override { return encoder_->Step(); }

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    if (name != network_.head_.output) return encoder_->Output(name, begin, end);
    if (network_.head_.each_row) return network_.EachRow(Taken(begin, end));
    return network_.Apply(network_.input_.HasRows() ? Pooled(begin, end) : Taken(begin, end),
                          network_.head_.layers_of_rows, std::ssize(network_.layers_));
  }

 private:
  at::Tensor Taken(int64_t begin, int64_t end) {
    return encoder_->Output(network_.input_.name, begin, end).to(at::kFloat);
  }

  at::Tensor Pooled(int64_t begin, int64_t end) {
    const auto rows = [this](int64_t first, int64_t last) {
      const at::Tensor own = encoder_->Output(network_.input_.name, first, last);
      const int64_t layers = network_.head_.layers_of_rows;
      return layers == 0 ? own : network_.Apply(own.to(at::kFloat), 0, layers);
    };
    return PoolSequences(rows, layout_, mask_, begin, end, network_.head_.pooling);
  }

  const HeadNetwork& network_;
  PlacedLayout layout_;
  at::Tensor mask_;
  std::unique_ptr<Pass> encoder_;
};

HeadNetwork::Layer::Layer(int64_t inputs, const HeadLayer& options)
    : kind(options), linear(inputs, options.outputs, options.biased) {
  if (kind.norm) norm.emplace(kind.outputs, kind.norm->eps, kind.norm->biased);
  if (!kind.skip_path.empty()) skip.emplace(inputs, kind.outputs, /*biased=*/false);
}

void HeadNetwork::Layer::DeclareAnswers(const Scope& scope, const Scope& body) {
  const AnswerTokens& answers = *kind.answers;
  if (answers.cap > 0 && answers.no) linear.outputs = 2;
  at::Tensor& head = answers.tied.empty() ? own_head_ : body.Slot(answers.tied);
  (scope / kind.path).Declare("weight", head, {answers.vocabulary, linear.inputs}, Init::kNormal);
  scope.AfterLoading([this, &head](DType) {
    linear.weight = head.narrow(0, kind.answers->yes, 1).to(at::kFloat);
    if (kind.answers->no) {
      const at::Tensor no = head.narrow(0, *kind.answers->no, 1);
      linear.weight =
          kind.answers->cap > 0 ? at::cat({linear.weight, no.to(at::kFloat)}) : linear.weight - no;
    }
    linear.weight = linear.weight / kind.answers->divisor;
    own_head_.reset();
  });
}

void HeadNetwork::Layer::Declare(const Scope& scope, const Scope& body) {
  if (kind.answers) return DeclareAnswers(scope, body);
  linear.Declare(scope / kind.path, /*exact=*/true);
  if (norm) norm->Declare(scope / kind.norm->path);
  if (skip) skip->Declare(scope / kind.skip_path, /*exact=*/true);
  // Vectors are pooled in F32, and so few, or made of rows so short, that a device, too, multiplies
  // them in it.
  scope.AfterLoading([this](DType) {
    const auto to_float = [](Linear& part) {
      for (at::Tensor* tensor : {&part.weight, &part.bias}) {
        if (tensor->defined()) *tensor = tensor->to(at::kFloat);
      }
    };
    to_float(linear);
    if (skip) to_float(*skip);
    if (!norm) return;
    norm->weight = norm->weight.to(at::kFloat);
    if (norm->with_bias) norm->bias = norm->bias.to(at::kFloat);
  });
}

at::Tensor HeadNetwork::Layer::operator()(const at::Tensor& x) const {
  at::Tensor y = linear(x);
  if (kind.answers && kind.answers->cap > 0) {
    y.div_(kind.answers->cap).tanh_().mul_(kind.answers->cap);
    if (kind.answers->no) y = y.narrow(1, 0, 1) - y.narrow(1, 1, 1);
  }
  Activate(kind.activation, y);
  if (norm) y = (*norm)(y);
  if (skip) skip->AddTo(y, x);
  return kind.skip ? y + x : y;
}

HeadNetwork::HeadNetwork(std::unique_ptr<Network> encoder, Head head)
    : encoder_(std::move(encoder)),
      head_(std::move(head)),
      input_(*encoder_->signature().FindOutput(head_.input)) {
  int64_t width = input_.axes.back().size;
  for (const HeadLayer& layer : head_.layers) {
    layers_.emplace_back(width, layer);
    width = layer.outputs;
  }
  width_ = width;
}

void HeadNetwork::Declare(const Scope& scope) {
  const Scope body = head_.encoder.empty() ? scope : scope / head_.encoder;
  if (!head_.encoder.empty()) body.IsBody();
  encoder_->Declare(body);
  for (Layer& layer : layers_) layer.Declare(scope, body);
}

Signature HeadNetwork::signature() const {
  Signature signature = encoder_->signature();
  // It stands in the place of a vector that it is made of.
  std::erase_if(signature.outputs,
                [this](const OutputSpec& output) { return output.name == head_.output; });
  OutputSpec made{.name = head_.output,
                  .axes = {Axis::Fixed(width_)},
                  .mask = head_.hidden_too ? "" : input_.mask,
                  .of_nothing = input_.of_nothing};
  if (head_.each_row || head_.pools_some) {
    made.mask = head_.each_row ? kScoringMask : kPoolingMask;
    signature.inputs.push_back(
        {.name = made.mask, .kind = InputKind::kMask, .axes = {input_.axes[0]}, .optional = true});
  }
  if (head_.each_row) {
    made.axes.insert(made.axes.begin(), input_.axes[0]);
    made.leaves_out = true;
  }
  signature.outputs.insert(signature.outputs.begin(), std::move(made));
  return signature;
}

double HeadNetwork::Flops(int64_t length) const {
  double flops = 0;
  for (const Layer& layer : layers_) {
    flops += static_cast<double>(layer.linear.Flops() + (layer.skip ? layer.skip->Flops() : 0));
  }
  return encoder_->Flops(length) + flops * static_cast<double>(head_.each_row ? length : 1);
}

NetworkNotes HeadNetwork::Notes() const {
  NetworkNotes notes = encoder_->Notes();
  if (!head_.labels.names.empty()) {
    notes.facts.emplace_back(Title(head_.labels.problem), Listed(head_.labels.names));
  }
  return notes;
}

std::unique_ptr<Pass> HeadNetwork::Begin(TensorBatch batch) const {
  return std::make_unique<HeadPass>(*this, std::move(batch));
}

at::Tensor HeadNetwork::Apply(at::Tensor vectors, int64_t first, int64_t end) const {
  for (int64_t i = first; i < end; ++i) vectors = layers_[static_cast<size_t>(i)](vectors);
  return vectors;
}

at::Tensor HeadNetwork::EachRow(const at::Tensor& rows) const {
  const at::Tensor made = Apply(rows, 0, std::ssize(layers_));
  return head_.normalized ? made / made.norm(2, {-1}, /*keepdim=*/true).clamp_min(1e-12) : made;
}

}  // namespace linserve
