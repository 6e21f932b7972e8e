"""What every answer of the API gets on its way out: an entity tag, the form of its errors, leave for pages of other sites."""
