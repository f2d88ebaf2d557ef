// Addresses of Solana's mainnet that the feed reads.

/** Bonding curves. */
export const PUMP_PROGRAM = '6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P'
/** Pools, where a token trades once its curve is sold out. */
export const AMM_PROGRAM = 'pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA'
export const TOKEN_PROGRAMS: readonly string[] = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
]
/** The first block of mainnet: an endpoint of another chain has another one. */
export const MAINNET_GENESIS = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'
/** Pyth's price of SOL, and the program that owns the account. */
export const PYTH_SOL_USD = '7UVimffxr9ow1uXYxsr4LHAcV58mLzhmwaeKvJ1pjLiE'
export const PYTH_OWNER = 'rec5EKMGg6MxZYaMdyBfgwp4d5rB9T1VQH5pJv5LtFJ'
/** Orca's pool of SOL and USDC, and the program that owns the account. */
export const ORCA_SOL_USDC = 'Czfq3xZZDmsdGdUyrNLtRhGc47cXcZtLG4crryfu44zE'
export const ORCA_OWNER = 'whirLbMiicVdio4qvUfM5KAg6Ct8VwpYzGff3uctyCc'
