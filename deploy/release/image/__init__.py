"""What is run while an image is built, and in it when it is built."""
