"""Starts TensorZero's gateway from its Python package, and prints its address: `python bench/tensorzero_gateway.py CONFIG`."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    import openai  # in the environment of TensorZero, not in ours
    import tensorzero  # type: ignore[import-not-found] # see above

    unused = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:1")
    client = tensorzero.patch_openai_client(unused, config_file=sys.argv[1], async_setup=False)
    print(f"address: {client.base_url}", flush=True)
    signal.pause()
