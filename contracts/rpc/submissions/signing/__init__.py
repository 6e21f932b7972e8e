"""What the signing page calls: the form, codes and identity checks, the telephone, handing over, ways on, the last step."""
