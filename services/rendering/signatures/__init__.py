"""What makes a signature: keys and certificates, time-stamps, archive time-stamps; no job, no row."""
