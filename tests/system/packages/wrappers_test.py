"""What models are wrapped in where they are trained: the exporter finds the model in it."""

import contextlib
import copy
import importlib.metadata
import io
import json
import os
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import python_package
import pytorch_lightning
import torch
from ema_pytorch import EMA
from linear_attention_transformer import AutoregressiveWrapper, LinearAttentionTransformerLM
from linear_attention_transformer.autopadder import Autopadder
from linformer import LinformerLM
from linformer_pytorch import LinformerLM as PaddedLM
from linformer_pytorch import Padder
from safetensors.torch import load_file
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.nn.parallel import DataParallel, DistributedDataParallel

export = python_package.load("linserve_export").export
LM = dict(num_tokens=50, dim=16, seq_len=20, depth=2, heads=2, k=4)
PADDED = dict(num_tokens=50, input_size=20, channels=16, dim_k=4, dim_ff=8)
CAUSAL = dict(num_tokens=50, dim=16, depth=2, max_seq_len=32, heads=2, dim_head=8, causal=True, blindspot_size=4)
IDS = torch.randint(50, (2, 13))


class Trainer(pytorch_lightning.LightningModule):
    """As users write it, with whatever else they train with."""

    def __init__(self, model):
        super().__init__()
        self.net = model
        self.probe = nn.Linear(16, 2)


class Engine(nn.Module):
    """The form of deepspeed.DeepSpeedEngine, which compiles kernels when it starts: its `module` is the model."""

    def __init__(self, model):
        super().__init__()
        self.module = model


class WrappersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def exported(self, net, params, **options):
        export(net, params, self.folder / "model", IDS, **options)
        return (load_file(self.folder / "model/model.safetensors"),
                json.loads((self.folder / "model/config.json").read_text(encoding="utf-8")))

    def assert_same(self, tensors, model):
        wanted = model.state_dict()
        self.assertEqual(set(tensors), set(wanted))
        for name, tensor in tensors.items():
            self.assertTrue(torch.equal(tensor, wanted[name]), name)

    def test_says_what_stays_behind(self):
        for model, left in ((LinformerLM(**LM), ""), (Trainer(LinformerLM(**LM)), "probe.weight, probe.bias"),
                            (DataParallel(Trainer(LinformerLM(**LM))), "module.probe.weight, module.probe.bias")):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.exported(model, LM)
            said = printed.getvalue().partition("left behind, for what is served has no such tensors: ")[2]
            self.assertEqual(said.partition("\n")[0], left)

    def test_options_that_no_server_has_are_refused(self):
        with self.assertRaisesRegex(ValueError, "'poolin', which is no option of a model; those are padding, "):
            self.exported(LinformerLM(**LM), LM, serving={"poolin": "mean"})
        self.assertFalse((self.folder / "model").exists())

    def finds(self, wrap, wrapper=None, model=None, params=LM, **options):
        plain = model or LinformerLM(**params)
        tensors, config = self.exported(wrap(copy.deepcopy(plain)), params, **options)
        self.assert_same(tensors, plain)
        self.assertEqual(config.get("wrapper"), wrapper)
        return config

    def test_nothing(self):
        config = self.finds(lambda model: model)
        self.assertEqual(config["architecture"], "linformer.LinformerLM")
        self.assertEqual(config["params"], {**LM, "dim_head": None, "one_kv_head": False, "share_kv": False,
                                            "reversible": False, "dropout": 0.0})
        self.assertIn("linformer==0.2.3\n", (self.folder / "model/requirements.txt").read_text(encoding="utf-8"))

    def test_data_parallel(self):
        self.finds(DataParallel)

    def test_distributed_data_parallel(self):
        torch.distributed.init_process_group("gloo", init_method=f"file://{self.folder}/peers", rank=0, world_size=1)
        self.addCleanup(torch.distributed.destroy_process_group)
        self.finds(DistributedDataParallel)

    def test_compile(self):
        self.finds(torch.compile)
        self.finds(lambda model: DataParallel(torch.compile(model)))

    def test_parts_that_are_compiled_or_checkpointed(self):
        def wrap(model):
            model.linformer = torch.compile(model.linformer, backend="eager")
            model.to_logits = checkpoint_wrapper(model.to_logits)
            self.assertTrue(any("_orig_mod." in name for name in model.state_dict()))
            return model
        self.finds(wrap)

    def test_averages(self):
        self.finds(torch.optim.swa_utils.AveragedModel)

    def test_ema_by_choice(self):
        model = LinformerLM(**LM)
        ema = EMA(model, beta=0.5, update_after_step=0, update_every=1)
        ema.update()
        with torch.no_grad():
            model.to_logits.bias.add_(1)
        ema.update()
        with self.assertRaisesRegex(ValueError, "2 models of .*online_model.*ema_model"):
            self.exported(ema, LM)
        self.assert_same(self.exported(ema, LM, part="ema_model")[0], ema.ema_model)
        self.assert_same(self.exported(ema, LM, part="online_model")[0], model)
        self.assertFalse(torch.equal(model.to_logits.bias, ema.ema_model.to_logits.bias))
        self.finds(lambda model: EMA(model, include_online_model=False))

    def test_lightning(self):
        self.finds(Trainer)

    def test_deepspeed(self):
        self.finds(Engine)
        model = LinformerLM(**LM)
        model.to_logits.bias.data = torch.empty(0)  # as ZeRO stage 3 has what it splits over processes
        with self.assertRaisesRegex(ValueError, "to_logits.bias is empty.* zero_to_fp32"):
            self.exported(Engine(model), LM)

    def test_padders(self):
        config = self.finds(Padder, {"type": "linformer_pytorch.Padder"}, PaddedLM(**PADDED, parameter_sharing="none"),
                            {**PADDED, "parameter_sharing": "none"})
        self.assertEqual(config["serving"], {"padding": "zeros"})
        kind = "linear_attention_transformer.Autopadder"
        model = LinearAttentionTransformerLM(**CAUSAL)
        self.finds(lambda model: Autopadder(model, pad_left=True), {"type": kind, "pad_left": True}, model, CAUSAL)
        self.finds(lambda model: Trainer(DataParallel(AutoregressiveWrapper(model))), {"type": kind, "pad_left": False},
                   model, CAUSAL, serving={"pooling": "mean"})

    def test_subclasses(self):
        class Mine(LinformerLM):
            def __init__(self):
                super().__init__(**LM)

        class Other(Mine):
            def forward(self, x):
                return 2 * super().forward(x)

        self.assertEqual(self.exported(Mine(), LM)[1]["architecture"], "linformer.LinformerLM")
        with self.assertRaisesRegex(ValueError, "is its forward the package's"):
            self.exported(Other(), LM)

    def test_versions_that_change_numbers_are_told_to_the_server(self):
        model = LinearAttentionTransformerLM(**CAUSAL, n_local_attn_heads=1, local_attn_window_size=8)
        params = {**CAUSAL, "n_local_attn_heads": 1, "local_attn_window_size": 8}
        version = importlib.metadata.version
        for local, told in (("1.5.2", None), ("1.5.3", "1.5.3"), ("1.8.4", "1.8.4"), ("1.8.5", None), ("1.11.2", None)):
            with unittest.mock.patch("importlib.metadata.version",
                                     lambda name: local if name == "local-attention" else version(name)):
                config = self.exported(Autopadder(model), params)[1]
            self.assertEqual(config["params"].get("local_attention"), told)
            self.assertIn(f"local-attention=={local}\n",
                          (self.folder / "model/requirements.txt").read_text(encoding="utf-8"))

    def test_no_model(self):
        with self.assertRaisesRegex(ValueError, "Linear holds no model that linserve has; it has linformer.Linf"):
            self.exported(nn.Linear(2, 2), {})

    def test_tensors_that_were_tied_are_untied(self):
        def tie(model):
            model.to_logits.weight = model.token_emb.weight
            return model
        self.finds(tie, model=tie(LinformerLM(**LM)))

    def test_what_the_package_shares_is_saved_once(self):
        tensors, _ = self.exported(Padder(PaddedLM(**PADDED)), PADDED)
        self.assertEqual([name for name in tensors if name.endswith(("E.weight", "F.weight"))],
                         ["linformer.seq.0.fn.heads.0.E.weight"])

    def test_half_precision(self):
        model = LinformerLM(**LM).bfloat16()
        self.finds(lambda model: model, model=model)
        with self.assertRaisesRegex(ValueError, "heads"):
            self.exported(model, {**LM, "heads": 8})

    def test_params_that_are_not_the_models(self):
        model = LinformerLM(**LM)
        with self.assertRaisesRegex(ValueError, "gives another y.*such as heads"):
            self.exported(model, {**LM, "heads": 4})
        with self.assertRaisesRegex(ValueError, "not those of a model of these params:\n.*proj_k"):
            self.exported(model, {**LM, "k": 8})
        with self.assertRaisesRegex(ValueError, "layers.2.* is missing"):
            self.exported(model, {**LM, "depth": 3})
        with self.assertRaisesRegex(ValueError, "layers.1.* is not in it"):
            self.exported(model, {**LM, "depth": 1})
        self.assertFalse((self.folder / "model").exists())

    def test_what_is_not_finite(self):
        model = LinformerLM(**LM)
        with torch.no_grad():
            model.to_logits.weight[3, 5] = float("nan")
        with self.assertRaisesRegex(ValueError, r"to_logits.weight holds nan at \[3, 5\]"):
            self.exported(model, LM)

    def test_examples(self):
        with self.assertRaisesRegex(TypeError, "a list, expected a tensor, or a dict"):
            export(LinformerLM(**LM), LM, self.folder / "model", [IDS])
        export(LinformerLM(**LM), LM, self.folder / "model", {"x": IDS.numpy()})
        self.assertEqual(set(load_file(self.folder / "model/example.safetensors")), {"input.x", "output.y"})


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    unittest.main(verbosity=2, buffer=True)
