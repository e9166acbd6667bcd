"""One file per congestion control: how it grows its window, and what it does to it after a loss."""
