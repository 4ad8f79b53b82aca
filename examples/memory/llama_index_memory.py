"""LlamaIndex's memory beside bm25: an adapter of 35 lines, for the packages llama-index-core and llama-index-embeddings-openai.

context-bench memory --system llama_index_memory.py:LlamaIndexMemory --tap-forward https://api.openai.com \
    --dataset synthetic-memory
"""

