"""LlamaIndex's vector memory as a system of the memory bench: an example of an adapter for a real package.

It needs llama-index-core and llama-index-embeddings-openai in addition to context-bench. This command runs offline,
with hashed words as embeddings, which is enough to check that the memory works and to count its calls:

    context-bench memory --system llama_index_memory.py:LlamaIndexMemory --tap-reply extract \
        --dataset synthetic-memory:length=4000 -n 1

With `--tap-forward https://api.openai.com`, a real embedding model answers, so the run measures the memory's quality.
"""

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import VectorMemory
from llama_index.embeddings.openai import OpenAIEmbedding


class LlamaIndexMemory:
    name = "llama-index"

    def __init__(self, base_url, *, api_key="none", embedding_model="text-embedding-3-small", k=10):
        server = base_url.rstrip("/").removesuffix("/v1")
        self._embedder = OpenAIEmbedding(model_name=embedding_model, api_base=f"{server}/v1", api_key=api_key)
        self._k = k
        self._users = {}

    def reset(self):
        self._users = {}

    def _open(self, user):
        if user not in self._users:
            self._users[user] = VectorMemory.from_defaults(
                vector_store=None,  # in memory
                embed_model=self._embedder,
                retriever_kwargs={"similarity_top_k": self._k},
            )
            self._users[user].batch_by_user_message = False  # store each turn separately
        return self._users[user]

    def ingest(self, turns, user=""):
        for turn in turns:
            said = f"{turn.get('speaker') or turn['role']}: {turn['content']}"
            self._open(user).put(ChatMessage(role=turn["role"], content=said, additional_kwargs={"id": turn["id"]}))

    def retrieve(self, question, k=None, user=""):
        found = self._open(user).get(question)[:k]
        return [{"text": each.content, "ids": [each.additional_kwargs["id"]]} for each in found]

    def query(self, question, user=""):
        return "\n".join(each["text"] for each in self.retrieve(question, user=user))
