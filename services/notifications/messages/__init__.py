"""What mails and messages say: a folder of templates for each kind, and what fills them."""
