"""The course in one zip for places without GitHub or without any network: both editions and all that they install."""
