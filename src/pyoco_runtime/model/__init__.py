"""Pure values of the contract and pure functions over them."""
