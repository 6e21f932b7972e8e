"""Work that is a row until it is done: who claims it, which comes next, who rests."""
