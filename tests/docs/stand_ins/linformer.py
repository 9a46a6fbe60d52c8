"""The package in name only: with PyTorch it takes gigabytes. That linserve has its numbers the goldens show."""


class LinformerLM:
    architecture = "linformer.LinformerLM"

    def __init__(self, **params):
        self.params = params
