"""Judge models for the G track. The room is reserved; its contents come with the judge."""
