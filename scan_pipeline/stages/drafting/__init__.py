"""From the address of an API to a proposed scan file: asked, recognised, marked as guessed."""
