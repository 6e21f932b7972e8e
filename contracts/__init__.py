"""What services say to each other, and how they run. The only code that two services may share."""
