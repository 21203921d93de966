"""Other tools' files -> nouns. One module per format; each says what it leaves out and why."""
