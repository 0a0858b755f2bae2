"""Ten levels against the compiler."""
