"""The Warp kernel of pictures, compiled from its text."""
