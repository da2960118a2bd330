"""A four-legged robot that walks over terrain, and sees it."""
