"""Public datasets: their records from the hub or from a folder, and the adapters that make examples of them."""
