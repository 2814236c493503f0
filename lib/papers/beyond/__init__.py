"""What belongs to no single paper."""
