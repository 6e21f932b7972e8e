"""What API users do with test mode as a whole: move its clock on, and remove all that was made in it."""
