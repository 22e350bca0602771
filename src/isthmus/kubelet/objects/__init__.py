"""Other objects of the API that pods need: followed, read, or made for them."""
