"""Files for models and checkpoints: numbers and JSON, no code, written completely or not at all."""
